import { counted, price } from "../design/figures.ts";
import type { Usage } from "../live/talk.ts";

/** What an answer took; a cost only where the model has a price. Nothing, where the model did not answer. */
export function took({ steps, input, output, cost }: Usage): string {
  if (input + output === 0) {
    return "";
  }
  const spent = cost > 0 ? [`cost ${price(cost)}`] : [];
  return [counted(steps, "step"), counted(input + output, "token"), ...spent].join(" · ");
}
