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

  /** A text that the coordinator keeps, named by its content. The script holds the name only; `read` opens it. */
  export interface Ref {
    /** SHA-256 of the text, in hex. */
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

  /** A judgement of each result by another model before it counts. */
  export interface Judge {
    /** What must hold, one sentence each. */
    criteria: string | readonly string[];
    model: string;
  }

  /** What every call of a model takes. */
  export interface Call {
    /** A model's name, such as "qwen3:8b". */
    model: string;
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
    /** The task. `{{item}}` stands for the text of `item`. */
    prompt: string;
    item?: Body;
    /** Another model accepts the result, or sends it back with reasons for another try. */
    evaluate?: Judge;
    /** Reasons why an earlier answer was not accepted. */
    feedback?: readonly string[];
  }

  export interface BatchRequest extends Call, Sampling {
    /** The task for each item. `{{item}}` stands for the item's text. */
    prompt: string;
    items: readonly Body[];
    /** A name for each item; by default a reference's name, else its number. */
    keys?: readonly string[];
    evaluate?: Judge;
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

  /** How many items ended. Nothing is left out: an item without a value is a failure with a reason. */
  export interface Collected<T> {
    readonly total: number;
    readonly succeeded: number;
    readonly failed: number;
    /** Share of the items that succeeded, from 0 to 1. */
    readonly coverage: number;
    /** All items, in input order. */
    readonly items: readonly Item<T>[];
    /** The values of those that succeeded, in input order. */
    readonly values: readonly T[];
    /** Those that failed, in input order. */
    readonly failures: readonly (Failure & { readonly key: string })[];
  }

  /** One step of a plan. */
  export interface PlanStep {
    readonly id: string;
    readonly goal: string;
    /** Ids of the steps whose results it needs. */
    readonly depends_on: readonly string[];
    /** The model that the planner suggests, or "". */
    readonly model: string;
    /** Names of what it changes. Steps that share one do not run at the same time. */
    readonly writes: readonly string[];
    /** Whether it acts on something outside. Such steps run one at a time. */
    readonly external: boolean;
  }

  export interface Plan {
    readonly steps: readonly PlanStep[];
    /** Ids in an order in which each step follows those it depends on. */
    readonly order: readonly string[];
  }

  export interface PlanRequest extends Call {
    goal: string;
    max_steps?: number;
    /** Models that the planner may suggest. */
    models?: readonly string[];
    feedback?: readonly string[];
  }

  export interface EvaluateRequest extends Omit<Call, "context"> {
    /** What must hold, one sentence each. */
    criteria: string | readonly string[];
    /** What is judged. */
    subject: Body;
    /** What the subject is judged against; quotes are looked up in subject and sources. */
    sources?: readonly Body[];
    /** What the subject was made for. */
    goal?: string;
  }

  export interface Evaluation {
    readonly verdict: "passed" | "sent_back" | "needs_human";
    readonly reasons: readonly string[];
    /** What the judge quoted and code found. */
    readonly facts: readonly Json[];
    /** What the judge said and code could not verify. */
    readonly opinions: readonly Json[];
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
  export function generate<T>(request: GenerateRequest & { schema: Schema<T> }): Promise<T>;
  export function generate(request: GenerateRequest): Promise<Text>;

  /** Splits a goal into steps that depend on each other. */
  export function plan(request: PlanRequest): Promise<Plan>;

  /** Has a model judge something by criteria, with quotes as evidence. Code computes the verdict. */
  export function evaluate(request: EvaluateRequest): Promise<Evaluation>;

  /** Turns texts into vectors. */
  export function embed(request: { model: string; inputs: readonly Body[]; retry?: Retry; uses?: readonly string[]; label?: string }): Promise<number[][]>;

  /**
   * Does the same for every item, in one command and as parallel as the machines allow. It never throws for an item
   * that failed: look at `failures` and `coverage`. A run with a failed item ends as incomplete.
   */
  export function batch<T>(request: BatchRequest & { schema: Schema<T> }): Promise<Collected<T>>;
  export function batch(request: BatchRequest): Promise<Collected<Ref>>;

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
