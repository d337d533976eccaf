export interface Piece {
  readonly kind: "same" | "added" | "removed";
  readonly text: string;
}

const MOST_COMPARED = 1_000_000; // pairs of words: past it the texts are told whole

/** What became of a text, word by word; in the order in which one reads it, what was removed before what was added. */
export function difference(before: string, after: string): Piece[] {
  if (before === after) {
    return joined([{ kind: "same", text: after }]);
  }
  const [old, young] = [words(before), words(after)];
  if (old.length * young.length > MOST_COMPARED) {
    return joined([
      { kind: "removed", text: before },
      { kind: "added", text: after },
    ]);
  }
  return joined(walk(old, young, common(old, young)));
}

/** Words with the blanks behind them; of scripts without blanks, characters. */
function words(text: string): string[] {
  return (
    text.match(
      /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]+\s*|\s+/gu,
    ) ?? []
  );
}

/** How many words the rests of both have in common, from every pair of places on. */
function common(old: readonly string[], young: readonly string[]): Uint32Array[] {
  const rests = Array.from({ length: old.length + 1 }, () => new Uint32Array(young.length + 1));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = young.length - 1; j >= 0; j--) {
      rests[i]![j] = old[i] === young[j] ? rests[i + 1]![j + 1]! + 1 : Math.max(rests[i + 1]![j]!, rests[i]![j + 1]!);
    }
  }
  return rests;
}

function* walk(old: readonly string[], young: readonly string[], rests: Uint32Array[]): Generator<Piece> {
  let [i, j] = [0, 0];
  while (i < old.length || j < young.length) {
    if (i < old.length && j < young.length && old[i] === young[j]) {
      yield { kind: "same", text: young[j]! };
      i++;
      j++;
    } else if (i < old.length && (j === young.length || rests[i + 1]![j]! >= rests[i]![j + 1]!)) {
      yield { kind: "removed", text: old[i++]! };
    } else {
      yield { kind: "added", text: young[j++]! };
    }
  }
}

function joined(pieces: Iterable<Piece>): Piece[] {
  const all: Piece[] = [];
  for (const piece of pieces) {
    const last = all.at(-1);
    if (last?.kind === piece.kind) {
      all[all.length - 1] = { kind: last.kind, text: last.text + piece.text };
    } else if (piece.text !== "") {
      all.push(piece);
    }
  }
  return all;
}
