// Package relay is the benchmark "number relay": does a job end better when code keeps the loop than when a model does? A world of
// workers, all of it code, gives numbers that cannot be guessed; the truth of a run is the workers' own log of who asked what, never a
// model's word. Four arms do the same tasks with the same model and texts: the loop in the model or in code, with a plan of the model's
// own or a plan that is right. What the arms with the loop in code do runs in loopkeeper itself.
package relay
