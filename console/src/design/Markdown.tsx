import { Component, type ReactNode, Suspense, lazy, memo } from "react";
import styles from "./Markdown.module.css";
import { blocks } from "./blocks.ts";
import { isTame } from "./markdown.ts";

const MarkdownText = lazy(() => import("./MarkdownText.tsx"));

/**
 * Text of a person or an agent, drawn as Markdown. Nothing in it runs and nothing is fetched: HTML is shown as it is
 * written, images as their words and address. What cannot be drawn is shown as plain text.
 */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const plain = <div className={styles.plain}>{text}</div>;
  if (!isTame(text)) {
    return plain;
  }
  return (
    <Fallback plain={plain}>
      <Suspense fallback={plain}>
        <MarkdownText text={text} />
      </Suspense>
    </Fallback>
  );
});

/** Such a text while it is written: what is finished of it is drawn once. */
export function GrowingMarkdown({ text }: { text: string }) {
  const pieces = isTame(text) ? blocks(text) : [text];
  return (
    <div className={styles.growing}>
      {pieces.map((piece, place) => (
        <Markdown key={place} text={piece} />
      ))}
    </div>
  );
}

class Fallback extends Component<{ plain: ReactNode; children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError(): { failed: boolean } {
    return { failed: true };
  }

  override render(): ReactNode {
    return this.state.failed ? this.props.plain : this.props.children;
  }
}
