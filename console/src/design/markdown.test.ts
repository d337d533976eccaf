import assert from "node:assert/strict";
import { test } from "node:test";
import { isTame, openable } from "./markdown.ts";

test("links lead to pages and letters, and nowhere else", () => {
  const good = ["https://rules.example/a?b=1#c", "HTTP://rules.example", "mailto:ann@rules.example"];
  const bad = [
    "javascript:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "file:///etc/passwd",
    "//rules.example",
    "/logout",
    "https://",
    "",
    undefined,
  ];

  assert.deepEqual(good.map(openable), good);
  assert.deepEqual(
    bad.map(openable),
    bad.map(() => undefined),
  );
});

test("what would take long to draw is not tame", () => {
  const traps = [
    "x".repeat(50_001),
    ">".repeat(1_000),
    "> ".repeat(1_000),
    "- ".repeat(1_000),
    "1. ".repeat(1_000),
    "[".repeat(5_000),
    "[a](".repeat(5_000),
    "|a".repeat(5_000),
    "![".repeat(100) + "](x)".repeat(100),
    "*a_ ".repeat(600),
    "~~a".repeat(600),
    Array.from({ length: 100 }, (_, depth) => `${"  ".repeat(depth)}- a`).join("\n"),
  ];

  assert.ok(traps.every((trap) => !isTame(trap)));
  assert.ok(
    isTame(
      `${"*a*, _b_\n\n".repeat(1_000)}# Parcels\n\n> - a\n>   1. b\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n${"-".repeat(80)}\n${"*".repeat(80)}\n`,
    ),
  );
});
