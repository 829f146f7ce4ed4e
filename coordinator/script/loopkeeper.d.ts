/**
 * The library that a loopkeeper workflow imports. Keep this file beside your scripts (`loopkeeper types > loopkeeper.d.ts`)
 * and your editor completes and checks them.
 *
 * A workflow is a default function. It runs again from the start after a restart, with the recorded answers, so it must
 * do the same each time: there is no network, no file, no timer, and `Date` and `Math.random` come from the run's ledger.
 */
declare module "loopkeeper" {
  export {}; // only what says "export" is exported

  /** What JSON can hold. Integers beyond 2^53 are `bigint`, in both directions. */
  export type Json = null | boolean | number | bigint | string | readonly Json[] | { readonly [key: string]: Json | undefined };

  /** A text or an image that the coordinator keeps, named by its content. The script holds the name only; `read` opens it. */
  export interface Ref {
    /** SHA-256 of its bytes, in hex. */
    readonly ref: string;
    /** File name or another name for people. */
    readonly name: string;
    /** Size in bytes. */
    readonly bytes: number;
  }

  /** Something a model is given: a text, a reference to one, or any other value, which is sent as JSON. */
  export type Body = string | Ref | object | number | boolean | bigint | null;

  /** What is known of the call that produced something. */
  export interface Facts {
    readonly node: string;
    readonly model: string;
    readonly prompt_tokens: number;
    readonly output_tokens: number;
    readonly seconds: number;
    /** True when a stand-in answered and no model did. */
    readonly simulated: boolean;
  }

  /** A generated text, by reference. */
  export interface Text extends Ref {
    /** Not part of the reference's JSON. */
    readonly facts: Facts;
  }

  /** How a failed or refused call is tried again. */
  export interface Retry {
    /** All tries of one call or item, failures and send-backs together. Default 3. */
    attempts: number;
  }

  /**
   * A model's name, such as "qwen3:8b", a role, such as "judge", that the configuration gives models to, or a list of these in order
   * of preference: the first works, and the next takes its place where it cannot. Of `evaluate` they are the judges to choose from.
   */
  export type Models = string | readonly string[];

  /** What must hold of something that is judged. A sentence alone is one with the defaults. */
  export interface Criterion {
    text: string;
    /** Without it nothing passes. Default true; others are only reported. */
    must?: boolean;
    /** It holds when something is not there, so that a judge has no line to show for it. */
    absence?: boolean;
    /** Names the subjects that judges of it were calibrated on. */
    type?: string;
  }

  /** What must hold, one sentence each. */
  export type Criteria = string | Criterion | readonly (string | Criterion)[];

  /** A judgement of each result by other models before it counts. */
  export interface Judge {
    criteria: Criteria;
    model: Models;
  }

  /** What every call of a model takes. */
  export interface Call {
    model: Models;
    /** The system prompt. */
    system?: string;
    /** Texts sent before the prompt. What calls share is stored once and kept warm on the node. */
    context?: readonly Body[];
    retry?: Retry;
    /**
     * Resources that each call holds while it runs, such as "browser" or "http:example.org". The coordinator's settings say how
     * many calls may hold one at once, and how often it may be taken; a name without a setting has no limit.
     */
    uses?: readonly string[];
    /** A name for this step in lists and traces. */
    label?: string;
  }

  /**
   * What a check says: `true` or an empty list of reasons when all is well; `false`, a reason or a list of reasons to send
   * the value back. The reasons go to the next attempt.
   */
  export type Checked = boolean | string | readonly string[];

  /** What shapes an answer. */
  export interface Sampling {
    /** Ollama's model options, such as `{ num_ctx: 16384, seed: 1 }`. */
    options?: { readonly [name: string]: Json };
    /** Let the model think first, where it can. */
    think?: boolean;
    /** Most tokens of an answer. */
    max_tokens?: number;
    temperature?: number;
  }

  export interface GenerateRequest extends Call, Sampling {
    /** The task. `{{item}}` stands for the text of `item`, and for the name of one that is an image. */
    prompt: string;
    /** What the model is shown: PNG, JPEG, WebP or GIF, at most 16, for a model that can see. */
    images?: readonly Ref[];
    item?: Body;
    /** Another model accepts the result, or sends it back with reasons for another try. */
    evaluate?: Judge;
    /** Reasons why an earlier answer was not accepted. */
    feedback?: readonly string[];
    /** Take an accepted result of the same request, prompt version and model from an earlier run, where there is one. */
    reuse?: boolean;
  }

  /** A text of many lines, or a folder, whose lines or files are the items of a batch. None of it passes through the script. */
  export interface Lines {
    readonly lines: { readonly ref: string };
  }

  /** What a check is given for a line of more than 64 KiB: where it is. `ref` names all lines, `bytes` is the size of this one. */
  export interface LongLine extends Ref {
    /** Its number, from 1. */
    readonly line: number;
  }

  /** Names the lines of a text (a JSON value each) as the items of a batch. */
  export function lines(ref: Ref): Lines;

  export interface BatchRequest<I extends Body = Body> extends Call, Sampling {
    /** The task for each item. `{{item}}` stands for the item's text, and for the name of one that is an image. */
    prompt: string;
    /** What the model is shown with each item: PNG, JPEG, WebP or GIF, at most 16, for a model that can see. */
    images?: readonly Ref[];
    items: readonly I[] | Lines;
    /** A name for each item; by default a reference's name, else its number. */
    keys?: readonly string[];
    evaluate?: Judge;
    /** Take accepted results of the same request, prompt version and model from earlier runs: only what changed is paid for. */
    reuse?: boolean;
  }

  export interface Failure {
    /** What went wrong: "schema_violation", "empty_turn", "sent_back", … or "threw" for the script's own errors. */
    readonly kind: string;
    readonly message: string;
    /** Position of the step that failed, if one did. */
    readonly step?: number;
  }

  /** How one item ended: with a value, a reference or a failure. */
  export interface Item<T> {
    readonly index: number;
    readonly key: string;
    readonly status: "succeeded" | "failed";
    readonly value?: T;
    readonly ref?: string;
    readonly bytes?: number;
    readonly failure?: Failure;
  }

  /**
   * How many items ended. Nothing is left out: an item without a value is a failure with a reason.
   *
   * A batch of more than 1,000 items has no `items`, `values` and `failures`, which throw; walk it with `pages`.
   */
  export interface Collected<T> {
    readonly total: number;
    readonly succeeded: number;
    readonly failed: number;
    /** Share of the items that succeeded, from 0 to 1. */
    readonly coverage: number;
    /** Set when the items are too many to be held at once: `pages` gives them. */
    readonly handle?: number;
    /** All items, in input order. */
    readonly items: readonly Item<T>[];
    /** The values of those that succeeded, in input order. */
    readonly values: readonly T[];
    /** Those that failed, in input order. */
    readonly failures: readonly ItemFailure[];
  }

  /** The failure of one item. */
  export interface ItemFailure extends Failure {
    readonly index: number;
    readonly key: string;
  }

  /** Somebody whom a step of a plan can be given to. */
  export interface PlanWorker {
    /** Up to 24 of a-z, 0-9, _ and -. */
    readonly name: string;
    /** What it can do, for the planner. */
    readonly about: string;
    /** What it does cannot be undone: a plan holds only if a worker that asks a person comes before. */
    readonly irreversible?: boolean;
    /** It asks a person. */
    readonly asks?: boolean;
  }

  /** A list over which a step may do the same for each element. */
  export interface PlanList {
    /** Up to 24 of a-z, 0-9, _ and -. */
    readonly name: string;
    /** How many elements it has. */
    readonly count: number;
    readonly about?: string;
  }

  /** One step of a plan. */
  export interface PlanStep {
    readonly id: string;
    /** The parts of the goal that it serves: "g1" is the first of the request's `parts`. */
    readonly parts: readonly string[];
    readonly instruction: string;
    /** The name of its worker. */
    readonly worker: string;
    /** Names of inputs, or of what other steps write. */
    readonly reads: readonly string[];
    /** Names of what it writes; no other step writes them. */
    readonly writes: readonly string[];
    /** Steps that the planner put before it, although nothing of theirs is read. */
    readonly after: readonly string[];
    /** All steps that have to be done before, as code derived them from what is read and `after`. */
    readonly depends_on: readonly string[];
    /** How one can see that it is done. */
    readonly done_when: readonly string[];
    /** The list that it is done for each element of, or "". */
    readonly each: string;
    /** For each step in `depends_on` why. */
    readonly why: { readonly [id: string]: string };
  }

  export interface Plan {
    /** Only a "plan" has steps; "need_info" has questions to a person, and "impossible" says why in its note. */
    readonly outcome: "plan" | "need_info" | "impossible";
    /** The planner's own words. */
    readonly note: string;
    readonly questions: readonly string[];
    readonly steps: readonly PlanStep[];
    /** Ids in an order in which each step follows those it depends on. */
    readonly order: readonly string[];
  }

  export interface PlanRequest extends Call {
    goal: string;
    /** The parts of the goal; each has to be served by a step. Without them the goal is one part. */
    parts?: readonly string[];
    /** Without them there is one that writes texts, named "write". */
    workers?: readonly PlanWorker[];
    /** Names of what is there to be read. */
    inputs?: readonly string[];
    lists?: readonly PlanList[];
    /** What is verified, or done already: only what is left is planned. */
    facts?: readonly string[];
    /** What models said and nobody verified. */
    leads?: readonly string[];
    /** Default 8. */
    max_steps?: number;
    feedback?: readonly string[];
  }

  /** A criterion that code has judged: a test, an exit code, a size. */
  export interface CodeCriterion {
    readonly name: string;
    readonly passed: boolean;
    readonly detail?: string;
  }

  export interface EvaluateRequest extends Omit<Call, "context"> {
    criteria: Criteria;
    /** What code has found. Where it has failed, no model is asked. */
    code?: readonly CodeCriterion[];
    /** What is judged. */
    subject: Body;
    /** The model that wrote the subject: none of its family judges it while there is another. By default the author of a text from `generate`, or of the first one in a list. */
    author?: string;
    /** What the subject is judged against; quotes are looked up in subject and sources. */
    sources?: readonly Body[];
    /** What the subject was made for. */
    goal?: string;
    /** The judges are offered the answers in the other order, from the first one on: to see whether that changes them. */
    reversed?: boolean;
  }

  /** A line that a judge named and code found. */
  export interface EvaluationFact {
    readonly criterion: string;
    readonly quote: string;
    /** "subject", or the name of a source. */
    readonly in: string;
    readonly line: number;
  }

  export type CriterionAnswer = "met" | "not_met" | "cannot_tell";

  /** How one criterion was answered. */
  export interface CriterionResult {
    readonly criterion: string;
    readonly must: boolean;
    /** What the answers come to. */
    readonly result: CriterionAnswer;
    /** `counted` is what code takes an answer for: "cannot_tell" where no line that was named holds it. */
    readonly by: readonly { readonly judge: string; readonly said: CriterionAnswer; readonly counted: CriterionAnswer }[];
  }

  /** Who judged, and what its word is known to be worth. */
  export interface EvaluationJudge {
    readonly model: string;
    readonly digest?: string;
    readonly family: string;
    readonly node?: string;
    readonly calibration: "none" | "good" | "advisory";
    /** How many subjects of each kind it was measured on, and its share of right answers on good and on bad ones. */
    readonly n?: number;
    readonly tpr?: number;
    readonly tnr?: number;
  }

  export interface Evaluation {
    readonly verdict: "passed" | "sent_back" | "needs_human";
    /** The rule that made the verdict, "not_met" for example. */
    readonly rule: string;
    /** Made of what code found: lines that were named and are there, and the results of code. */
    readonly reasons: readonly string[];
    readonly facts: readonly EvaluationFact[];
    /** What judges said and code could not verify. */
    readonly opinions: readonly string[];
    readonly criteria: readonly CriterionResult[];
    readonly judges: readonly EvaluationJudge[];
    /** What was found in the subject that talks to its judge. */
    readonly flags?: readonly string[];
    readonly code?: readonly CodeCriterion[];
  }

  /** A step that failed for good. */
  export class StepError extends Error {
    /** The outcome, "schema_violation" for example. */
    readonly kind: string;
    /** Position of the step in the run. */
    readonly step: number;
  }

  /**
   * Does one piece of work. With a schema it returns the validated value, without one a reference to the text.
   * Throws a StepError when all attempts failed.
   */
  export function generate<T, I extends Body = Body>(
    request: GenerateRequest & { schema: Schema<T>; item?: I; check?: (value: T, item: I) => Checked | Promise<Checked> },
  ): Promise<T>;
  export function generate<I extends Body = Body>(
    request: GenerateRequest & { item?: I; check?: (text: Text, item: I) => Checked | Promise<Checked> },
  ): Promise<Text>;

  /**
   * Has a model name the steps to a goal with what each reads and writes; code derives what depends on what, and refuses a plan that
   * does not hold. Look at `outcome`: a planner may need to know something first.
   */
  export function plan(request: PlanRequest & { check?: (plan: Plan, goal: string) => Checked | Promise<Checked> }): Promise<Plan>;

  /**
   * Has models judge something by criteria, with lines of it as evidence. Code looks the lines up and computes the verdict: with several
   * models in `model` it takes two of different families to pass.
   */
  export function evaluate(request: EvaluateRequest): Promise<Evaluation>;

  /** Turns texts into vectors. */
  export function embed(request: { model: Models; inputs: readonly Body[]; retry?: Retry; uses?: readonly string[]; label?: string }): Promise<number[][]>;

  /**
   * Does the same for every item, in one command and as parallel as the machines allow. It never throws for an item
   * that failed: look at `failures` and `coverage`. A run with a failed item ends as incomplete. With a `check`, code looks
   * at each value before it counts, and before another model judges it. With items of `lines` it is given the value in the line, or a
   * LongLine.
   */
  export function batch<T, I extends Body>(
    request: BatchRequest<I> & { schema: Schema<T>; check?: (value: T, item: I, index: number) => Checked | Promise<Checked> },
  ): Promise<Collected<T>>;
  export function batch<I extends Body>(
    request: BatchRequest<I> & { check?: (text: Text, item: I, index: number) => Checked | Promise<Checked> },
  ): Promise<Collected<Ref>>;

  export interface EachOptions<I> {
    /** How many items are worked on at the same time. Default 16. */
    concurrency?: number;
    /** A name for each item; by default a reference's name, else its number. */
    key?: (item: I, index: number) => string;
    label?: string;
  }

  /**
   * Runs a function for every item, a bounded number at the same time. An item whose function throws is a failure in
   * the result and makes the run incomplete; it does not stop the others.
   */
  export function each<I, T>(items: readonly I[], work: (item: I, index: number) => T | Promise<T>, options?: EachOptions<I>): Promise<Collected<T>>;

  /** Runs named branches in parallel and waits for all. Throws when one failed, after all have ended, and names each. */
  export function all<B extends { readonly [name: string]: Promise<unknown> | (() => unknown) }>(
    branches: B,
  ): Promise<{ [K in keyof B]: B[K] extends () => infer R ? Awaited<R> : Awaited<B[K]> }>;

  /**
   * Code that judges: makes a value, and makes it again with the reasons of the check, as often as `attempts` says (default
   * 3). Returns the value that is good; throws an error of the kind "sent_back" when none is.
   */
  export function check<T>(
    make: (feedback: string[], attempt: number) => T | Promise<T>,
    judge: (value: T) => Checked | Promise<Checked>,
    options?: { attempts?: number; label?: string },
  ): Promise<T>;
  /** The same for a value that is there. */
  export function check<T>(value: T | Promise<T>, judge: (value: T) => Checked | Promise<Checked>): Promise<T>;

  export interface UntilRequest<S> {
    /** A name for lists and traces. */
    label?: string;
    /** What it begins with. */
    state: S;
    /** Whether the state is the wanted one; asked before the first round and after each. */
    reached: (state: S, round: number) => boolean | Promise<boolean>;
    /** Makes the next state. Rounds count from 1. */
    round: (state: S, round: number) => S | Promise<S>;
    /** How many rounds there are at most. */
    rounds: number;
  }

  export interface Reached<S> {
    readonly reached: boolean;
    readonly rounds: number;
    readonly state: S;
  }

  /** Repeats until a state is reached that code can check, within a bound. A run with a state that was not reached is incomplete. */
  export function until<S>(request: UntilRequest<S>): Promise<Reached<S>>;

  /** Waits: seconds, or until a time. It survives restarts, costs no active time and holds no memory. */
  export function sleep(
    wait: number | { seconds: number; until?: never; label?: string } | { until: Date | string; seconds?: never; label?: string },
  ): Promise<void>;

  /** What a question to a person has. With a time-out it needs to say what counts as the answer then. */
  export interface Asked {
    /** What the person is shown: one thing, or a list. */
    show?: Body | readonly Body[];
    timeout_seconds?: number;
    label?: string;
  }

  export interface ApproveRequest extends Asked {
    title: string;
    text?: string;
    /** What happens after a yes. */
    will?: string;
    on_timeout?: "approved" | "rejected";
  }

  export interface Approval {
    readonly outcome: "approved" | "rejected";
    readonly comment: string;
    readonly by: string;
    readonly timed_out: boolean;
  }

  /** Asks a person for a yes or no, and waits as long as it takes. A no does not throw. */
  export function approve(request: ApproveRequest): Promise<Approval>;

  export interface QuestionRequest extends Asked {
    text: string;
    choices?: readonly string[];
    on_timeout?: Json;
  }

  export interface Answer<T> {
    readonly answer: T;
    readonly by: string;
    /** What was said beside the answer, if anything. */
    readonly comment?: string;
    readonly timed_out: boolean;
  }

  /** Asks a person, and waits as long as it takes. The answer is a text, one of `choices`, or what a schema accepts. */
  export function question<T>(request: QuestionRequest & { schema: Schema<T> }): Promise<Answer<T>>;
  export function question<const C extends string = string>(request: QuestionRequest & { choices?: readonly C[] }): Promise<Answer<C>>;

  export interface ToolOptions {
    retry?: Retry;
    uses?: readonly string[];
    label?: string;
  }

  /** Does something outside, such as "file.write". What becomes of a write that a crash interrupted is asked, never guessed. */
  export function tool<T = any>(name: string, input: object, options?: ToolOptions): Promise<T>;

  export interface SpawnRequest {
    /** The name of a built-in workflow, or of one that was added. */
    workflow: string;
    input: object;
    /** Starting the same key again gives the run that has it. */
    key?: string;
    /** Limits of the child, as `run` takes them. */
    limits?: { readonly [name: string]: number };
    label?: string;
  }

  /** How a child ended. */
  export interface ChildReport {
    readonly run: string;
    readonly state: "completed" | "incomplete" | "failed" | "timed_out" | "exhausted" | "cancelled" | "diverged";
    readonly outputs: { readonly [name: string]: any };
    readonly coverage: number;
    readonly failures: readonly Json[];
    readonly shortfalls: readonly Json[];
  }

  /**
   * Starts another run and waits for its end, whatever that is: look at `state`. A detached one is only started; it is no
   * part of this run any more, and is not cancelled with it.
   */
  export function spawn(request: SpawnRequest & { detached: true }): Promise<{ readonly run: string }>;
  export function spawn(request: SpawnRequest & { detached?: false }): Promise<ChildReport>;

  /** What ends a phase. Made by `gate`. */
  export interface Gate {
    readonly outcome: "passed" | "sent_back" | "needs_human";
    readonly reason?: string;
    readonly target?: string;
  }

  export const gate: {
    passed(): Gate;
    /** Goes back to an earlier phase of this run, which is given the reason. */
    sent_back(target: string, reason: string): Gate;
    /**
     * A person decides, and is asked with the reason: "pass", "back to …", which is the phase of `back_to` or else any earlier one, or "stop", which ends
     * the pipeline. A comment on the answer is why a phase has to be done again.
     */
    needs_human(reason: string, options?: { back_to?: string }): Gate;
    /** What an evaluation says, as a gate. */
    of(evaluation: Pick<Evaluation, "verdict" | "reasons">, options?: { back_to?: string }): Gate;
  };

  export interface PhaseReason {
    /** The phase, or the person, that went back. */
    readonly from: string;
    readonly reason: string;
    readonly by: string;
  }

  export interface PhaseContext {
    readonly name: string;
    /** How often the phase has begun, from 1. */
    readonly round: number;
    /** Why it has to be done again. */
    readonly reasons: readonly PhaseReason[];
    /** What it made in the round before. */
    readonly previous?: any;
  }

  type Inputs = { readonly [name: string]: any };

  export interface Phase {
    readonly name: string;
    /** Names of inputs and of earlier phases. The phase is given these and nothing else. */
    readonly needs?: readonly string[];
    /** The work. It may end its phase itself by returning a gate, for example to go back because it found a gap. */
    run(inputs: Inputs, at: PhaseContext): unknown;
    /** Looks at what the work made. Without one a phase has passed when its work is done. */
    gate?(value: any, inputs: Inputs, at: PhaseContext): Gate | Promise<Gate>;
  }

  export interface PipelineRequest {
    readonly name: string;
    readonly phases: readonly Phase[];
    readonly inputs?: Inputs;
    /** How often there may be a way back. Default 3. */
    readonly max_rollbacks?: number;
  }

  /**
   * Does phases one after the other. One that is sent back is done again with the reasons, and so are those after it. A
   * person may go back as well: then the phase in progress is given up where it is. A run has one pipeline at a time, and
   * nothing should be under way beside it. Returns what each phase made.
   */
  export function pipeline(request: PipelineRequest): Promise<{ readonly [phase: string]: any }>;

  /** One page of a source, and the token of the next; `null` after the last. */
  export interface Page<T> {
    readonly items: readonly T[];
    readonly next?: Json;
  }

  export interface PageOptions {
    /** Most items of a page, up to 1,000, which is the default. */
    count?: number;
    only?: "failed" | "succeeded";
  }

  export interface WalkOptions {
    /** Most pages that are fetched. Default 1,000. */
    most?: number;
    label?: string;
  }

  /** Walks the items of a batch, however many: `for await (const page of pages(found)) …`. */
  export function pages<T>(batch: Collected<T>, options?: PageOptions): AsyncIterable<readonly Item<T>[]>;
  /** Fetches page after page; the first token is `null`. A source that goes on beyond the bound makes the run incomplete. */
  export function pages<T>(fetch: (token: any, page: number) => Page<T> | Promise<Page<T>>, options?: WalkOptions): AsyncIterable<readonly T[]>;

  /** Names what has to be covered in the end, beside what was submitted: a key that no item of this name succeeded for is missing. */
  export function expect(keys: readonly string[]): void;

  /** Says that keys are covered by what one call returned, such as the answer for a chunk of several; without it, by code. */
  export function cover(keys: readonly string[], by?: unknown): void;

  /** Accepts a failure, a child that did not complete, or an expected key that is left out on purpose. It is listed with the reason. */
  export function waive(failure: ItemFailure | Item<any> | StepError | ChildReport | string, reason: string): void;

  /** Does something else for what failed: a function, or a failure that is there already. When that succeeds, the failure counts as handled. */
  export function fallback<T, U>(primary: (() => T | Promise<T>) | Promise<T>, other: (failure: any) => U | Promise<U>): Promise<T | U>;
  export function fallback<U>(failure: ItemFailure | Item<any> | StepError, other: (failure: any) => U | Promise<U>): Promise<U>;

  /**
   * Names a key result. What it rests on is found where it can be seen: every object that a step delivered knows its step.
   * A value that was computed, such as a count or a text put together, knows none: give the values that it was made from as
   * `sources`. Without them all steps that have succeeded so far count as its sources, and are shown as inferred.
   */
  export function output(name: string, value: unknown, options?: { sources?: readonly unknown[] }): void;

  /** Records failures that the script gathered itself instead of throwing. The run ends as incomplete. */
  export function collect(label: string, failures: readonly { key: string; message: string; kind?: string; step?: number }[]): void;

  /** Opens a text. */
  export function read(ref: Ref | string): Promise<string>;

  /** Writes to the run's log, as `console.log` does. A replay does not write again. */
  export const log: {
    (...values: unknown[]): void;
    debug(...values: unknown[]): void;
    info(...values: unknown[]): void;
    warn(...values: unknown[]): void;
    error(...values: unknown[]): void;
  };

  /** The time of the last answer, from the ledger; `new Date()` is the same. */
  export function now(): Date;

  /** A random UUID (version 4), the same in every replay of the run. */
  export function uuid(): string;

  const type: unique symbol;

  /** A JSON Schema that knows the type of what it accepts. A plain JSON Schema object will do as well. */
  export interface Schema<out T> {
    readonly [type]?: T;
    readonly [keyword: string]: unknown;
  }

  /** A property that may be left out. */
  export interface Optional<T> {
    readonly optional: Schema<T>;
  }

  /** Keywords that every schema takes. */
  export interface Annotations {
    title?: string;
    description?: string;
    /** "json-schema" has the value checked as a JSON Schema before the run starts. */
    format?: string;
    default?: Json;
    examples?: readonly Json[];
    /** Of a parameter: false says that its files, lines or keyed items are only read, so that a run need not cover them. */
    covered?: boolean;
  }

  type Properties = { readonly [name: string]: Schema<any> | Optional<any> };
  type RequiredOf<P> = { [K in keyof P as P[K] extends Optional<any> ? never : K]: P[K] extends Schema<infer T> ? T : never };
  type OptionalOf<P> = { [K in keyof P as P[K] extends Optional<any> ? K : never]?: P[K] extends Optional<infer T> ? T : never };
  type Flat<T> = { [K in keyof T]: T[K] };

  /** Builds JSON Schemas together with their types: `const Point = t.object({ x: t.number() })`, `t.Of<typeof Point>`. */
  export namespace t {
    /** The type of what a schema accepts. */
    export type Of<S> = S extends Schema<infer T> ? T : never;
    /** An object with these properties and no others. */
    export function object<P extends Properties>(properties: P, options?: Annotations): Schema<Flat<RequiredOf<P> & OptionalOf<P>>>;
    /** An object with any keys and values of one schema. */
    export function record<T>(values: Schema<T>, options?: Annotations): Schema<{ [key: string]: T }>;
    export function array<T>(items: Schema<T>, options?: Annotations & { minItems?: number; maxItems?: number; uniqueItems?: boolean }): Schema<T[]>;
    export function string(options?: Annotations & { minLength?: number; maxLength?: number; pattern?: string; format?: string }): Schema<string>;
    export function integer(options?: Annotations & { minimum?: number; maximum?: number }): Schema<number>;
    export function number(options?: Annotations & { minimum?: number; maximum?: number; exclusiveMinimum?: number; exclusiveMaximum?: number }): Schema<number>;
    export function boolean(options?: Annotations): Schema<boolean>;
    function enum_<const V extends string | number>(values: readonly V[], options?: Annotations): Schema<V>;
    export { enum_ as enum };
    /** One of several schemas. */
    export function anyOf<S extends readonly Schema<any>[]>(...schemas: S): Schema<Of<S[number]>>;
    /** Anything. */
    export function any(options?: Annotations): Schema<any>;
    /** A property that may be left out of its object. */
    export function optional<T>(schema: Schema<T>): Optional<T>;
    /** A file: `--set name=@path` uploads it and the script receives a Ref. */
    export function file(options?: Annotations): Schema<Ref>;
    /** Files: `--set 'name=@docs/*.md'` uploads them. */
    export function files(options?: Annotations & { minItems?: number; maxItems?: number }): Schema<Ref[]>;
    /** A folder, or a text of one JSON value a line: `--set name=@folder`. It is for `items` of a batch. */
    export function lines(options?: Annotations): Schema<Lines>;
  }
}

/** Writes to the run's log. */
declare const console: {
  log(...values: unknown[]): void;
  debug(...values: unknown[]): void;
  info(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
};
