import assert from "node:assert/strict";
import { test } from "node:test";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";
import { blocks } from "./blocks.ts";

const WRITTEN = `# Parcels

A parcel is *tracked*
by its number.

- small ones

- large ones
  \`\`\`
  a

  b
  \`\`\`

  1. up to 10 kg

Then

    code by its indent

    and more of it

| Size | Price |
| ---- | ----: |
| small | 4.50 |

~~~~python
\`\`\`

not the end ~~~

~~~

def f(): ...
~~~~

> Nothing is refunded

> twice.

Under
===

***

\`\`\`one line\`\`\`

The end.
`;

test("pieces are drawn as the whole is, wherever the text is cut off", () => {
  for (let length = 0; length <= WRITTEN.length; length += 3) {
    const text = WRITTEN.slice(0, length);
    const pieces = blocks(text);

    assert.equal(pieces.join(""), text);
    assert.deepEqual(pieces.flatMap(read), read(text));
  }
  assert.ok(blocks(WRITTEN).length >= 8);
});

test("as a text grows, the pieces before the last stay", () => {
  let before: readonly string[] = [];
  for (let length = 0; length <= WRITTEN.length; length += 1) {
    const now = blocks(WRITTEN.slice(0, length));

    assert.deepEqual(now.slice(0, before.length - 1), before.slice(0, -1));
    before = now;
  }
});

test("what changes the drawing of other pieces keeps them together", () => {
  const texts = ["See [the rules][1].\n\nMore.\n\n[1]: https://rules.example", "Said.[^a]\n\nMore.\n\n[^a]: By me."];

  for (const text of [...texts, "<pre>\n\nText\n\n</pre>", "<!-- a\n\nb -->"]) {
    assert.deepEqual(blocks(text), [text]);
  }
});

/** What a text is drawn from: all but where it stood. */
function read(text: string): unknown[] {
  const { children } = fromMarkdown(text, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });
  return JSON.parse(JSON.stringify(children, (key, value: unknown) => (key === "position" ? undefined : value)));
}
