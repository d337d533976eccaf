/** What the engine says: text, in which `backticks` mark what is typed. */
export function Words({ text }: { text: string }) {
  return text.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}
