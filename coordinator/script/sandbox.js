// Runs first in every runtime. It closes the ways to make code from text, and says why what is missing is missing.
(function (global) {
  function refuse(name, why) {
    const refused = function () { throw new TypeError(name + " is not available in a workflow: " + why); };
    Object.defineProperty(refused, "name", { value: name });
    return refused;
  }
  function hide(name, value) {
    Object.defineProperty(global, name, { value, writable: false, enumerable: false, configurable: false });
  }

  // Every function constructor is reachable through the prototype of a function of its kind, and through nothing else.
  const noCode = "code cannot be made from text";
  const noFunction = refuse("Function", noCode);
  const kinds = [function () {}, async function () {}, function* () {}];
  for (const example of kinds) {
    const prototype = Object.getPrototypeOf(example);
    Object.defineProperty(prototype, "constructor", { value: noFunction, writable: false, configurable: false });
  }
  Object.defineProperty(noFunction, "prototype", { value: Function.prototype, writable: false });
  hide("Function", noFunction);
  hide("eval", refuse("eval", noCode));

  const timers = "there are no timers; what takes time is a step";
  const network = "there is no network; what reaches outside is a step";
  const modules = "use import with \"loopkeeper\" or a local file";
  const absent = {
    setTimeout: timers, setInterval: timers, setImmediate: timers, clearTimeout: timers, clearInterval: timers,
    fetch: network, XMLHttpRequest: network, WebSocket: network, EventSource: network, require: modules,
  };
  for (const name of Object.keys(absent)) hide(name, refuse(name, absent[name]));

  // What depends on the garbage collector cannot be replayed.
  delete global.WeakRef;
  delete global.FinalizationRegistry;
})(globalThis);
