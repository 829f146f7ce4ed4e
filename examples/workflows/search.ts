/** Finds job offers in the saved pages of sites: one share of a job search. */
import { batch, output, read, t } from "loopkeeper";

const Offer = t.object({ title: t.string({ description: "Copied from the page" }), place: t.string(), fits: t.string({ description: "How it fits the wish" }) });

export const params = t.object({ pages: t.files({ minItems: 1 }), wish: t.string(), model: t.string() });

export default async function search({ pages, wish, model }: t.Of<typeof params>) {
  const found = await batch({
    model, items: pages, context: [`What is looked for: ${wish}`], schema: t.array(Offer),
    prompt: "List the job offers on this page. None is a good answer.\n\n{{item}}",
    // An offer that is not on the page was made up.
    check: async (offers, page) => {
      const text = await read(page);
      return offers.filter(({ title }) => !text.includes(title)).map(({ title }) => `"${title}" is not on the page`);
    },
  });
  output("offers", found);
  return found.items.flatMap(({ key, value = [] }) => value.map((offer) => ({ page: key, ...offer })));
}
