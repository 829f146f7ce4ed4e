// Checked by tsc only: the library has every export that loopkeeper.d.ts promises, with a type that fits.
import type * as api from "loopkeeper";
import * as library from "../lib/index";

export const promised: Omit<typeof api, "StepError"> = library;
export const error: api.StepError = new library.StepError();
