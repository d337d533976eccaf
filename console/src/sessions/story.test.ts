import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunStory } from "../api/schema.ts";
import { told } from "./story.ts";

test("a step is told with what was sent, what its tools gave, and what people were asked", () => {
  const messages = [{ role: "system", content: null }];
  const story = {
    steps: [
      { number: 1, sent: { tokens: 20, parts: [{ name: "window", tokens: 20 }], messages } },
      { number: 2, sent: {} },
    ],
    executions: [{ step: 1, tool: "track" }],
    asked: [{ step: 2, state: "denied" }],
  };

  const [first, second] = told(story as unknown as RunStory);

  assert.deepEqual([first?.context.tokens, first?.context.parts[0]?.name], [20, "window"]);
  assert.deepEqual([first?.messages, second?.messages], [messages, []]);
  assert.deepEqual([first?.executions.length, first?.asked.length], [1, 0]);
  assert.deepEqual([second?.executions.length, second?.asked.length], [0, 1]);
});
