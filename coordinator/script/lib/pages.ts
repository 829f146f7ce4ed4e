// Walks what is too large to hold at once.
import type * as api from "loopkeeper";
import { placeItems } from "./collected";
import { call } from "./host";
import { canonical } from "./border";
import { collect } from "./notes";

const largestPage = 1000;

type Fetch<T> = (token: any, page: number) => api.Page<T> | Promise<api.Page<T>>;

export function pages(source: any, options: any = {}): AsyncIterable<readonly any[]> {
  if (typeof source === "function") return walk(source, options);
  if (typeof source?.handle === "number") return handed(source.handle, options);
  if (Array.isArray(source?.items)) return sliced(source.items, options);
  throw new TypeError("pages needs the result of a batch, or a function that fetches one page");
}

/** Fetches until there is no next page. A walk that is stopped by its bound makes the run incomplete. */
async function* walk<T>(fetch: Fetch<T>, { most = 1000, label = "pages" }: api.WalkOptions): AsyncGenerator<readonly T[]> {
  let token: unknown = null;
  for (let page = 0; page < most; page++) {
    const { items, next = null } = await fetch(token, page);
    yield items;
    if (next === null) return;
    if (canonical(next, "next") === canonical(token, "next")) throw new Error(`${label}: page ${page + 1} names itself as the next page`);
    token = next;
  }
  collect(label, [{ key: `page ${most + 1}`, kind: "bound_reached", message: `there is more after ${most} pages; the bound is the option "most"` }]);
}

async function* handed(step: number, { count = largestPage, only }: api.PageOptions): AsyncGenerator<readonly api.Item<any>[]> {
  for (let from: number | null = 0; from !== null; ) {
    const page: { items: api.Item<any>[]; next: number | null } = await call("page", { step, from, count, only }, step);
    placeItems(page.items, step);
    if (page.items.length > 0) yield page.items;
    from = page.next;
  }
}

async function* sliced(items: readonly api.Item<any>[], { count = largestPage, only }: api.PageOptions): AsyncGenerator<readonly api.Item<any>[]> {
  const wanted = only ? items.filter((item) => item.status === only) : items;
  for (let from = 0; from < wanted.length; from += count) yield wanted.slice(from, from + count);
}
