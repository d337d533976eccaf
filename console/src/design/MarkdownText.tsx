import type { AlignType, Definition, Nodes, Parents, Root, Table } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";
import { Fragment, type ReactNode, useMemo } from "react";
import styles from "./Markdown.module.css";
import { openable } from "./markdown.ts";

const GRAMMAR = { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] };
// A page has one heading of the first level, and it is not an agent's to give.
const HEADINGS = ["h3", "h3", "h4", "h5", "h6", "h6"] as const;

type Definitions = ReadonlyMap<string, Definition>;

/** Markdown, in a chunk of its own: few screens need the parser at once. */
export default function MarkdownText({ text }: { text: string }) {
  const tree = useMemo(() => fromMarkdown(text, GRAMMAR), [text]);
  return (
    <div className={styles.markdown} dir="auto">
      {drawnInside(tree, definitionsOf(tree))}
    </div>
  );
}

/** What a node is drawn as. There is a case for each kind, and none that makes markup of what somebody wrote. */
function drawn(node: Nodes, definitions: Definitions): ReactNode {
  switch (node.type) {
    case "text":
    case "html":
      return node.value;
    case "paragraph":
      return <p>{drawnInside(node, definitions)}</p>;
    case "heading": {
      const Heading = HEADINGS[node.depth - 1] ?? "h6";
      return (
        <Heading className={node.depth === 1 ? styles.first : undefined}>{drawnInside(node, definitions)}</Heading>
      );
    }
    case "emphasis":
      return <em>{drawnInside(node, definitions)}</em>;
    case "strong":
      return <strong>{drawnInside(node, definitions)}</strong>;
    case "delete":
      return <del>{drawnInside(node, definitions)}</del>;
    case "inlineCode":
      return <code>{node.value}</code>;
    case "code":
      return (
        <pre tabIndex={0}>
          <code>{node.value}</code>
        </pre>
      );
    case "blockquote":
      return <blockquote>{drawnInside(node, definitions)}</blockquote>;
    case "list": {
      const items = node.children.map((item, place) => (
        <li key={place}>
          {typeof item.checked === "boolean" && (item.checked ? "☑ " : "☐ ")}
          {node.spread ? drawnInside(item, definitions) : drawnTight(item, definitions)}
        </li>
      ));
      return node.ordered ? <ol start={node.start ?? 1}>{items}</ol> : <ul>{items}</ul>;
    }
    case "link":
      return link(node.url, drawnInside(node, definitions));
    case "linkReference":
      return link(definitions.get(node.identifier)?.url, drawnInside(node, definitions));
    case "image":
      return image(node.alt, node.url);
    case "imageReference":
      return image(node.alt, definitions.get(node.identifier)?.url);
    case "table":
      return table(node, definitions);
    case "break":
      return <br />;
    case "thematicBreak":
      return <hr />;
    case "footnoteReference":
      return <sup>{node.label ?? node.identifier}</sup>;
    case "footnoteDefinition":
      return (
        <div className={styles.footnote}>
          <sup>{node.label ?? node.identifier}</sup> {drawnTight(node, definitions)}
        </div>
      );
    default:
      return null; // where a reference leads is drawn with it
  }
}

function drawnInside(parent: Parents, definitions: Definitions): ReactNode {
  return parent.children.map((child, place) => <Fragment key={place}>{drawn(child, definitions)}</Fragment>);
}

/** Without paragraphs, for those who set nothing apart. */
function drawnTight(parent: Parents, definitions: Definitions): ReactNode {
  return parent.children.map((child, place) => (
    <Fragment key={place}>
      {child.type === "paragraph" ? drawnInside(child, definitions) : drawn(child, definitions)}
    </Fragment>
  ));
}

function link(url: string | undefined, children: ReactNode): ReactNode {
  const address = openable(url);
  return address === undefined ? (
    children
  ) : (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

function image(alt: string | null | undefined, url: string | undefined): ReactNode {
  return (
    <span className={styles.image}>
      {alt || "image"}
      {url && <code>{url}</code>}
    </span>
  );
}

function table({ align, children }: Table, definitions: Definitions): ReactNode {
  const [head, ...body] = children;
  const cells = (row: Table["children"][number], Cell: "th" | "td"): ReactNode =>
    row.children.map((cell, column) => (
      <Cell key={column} style={alignment(align?.[column])}>
        {drawnInside(cell, definitions)}
      </Cell>
    ));
  return (
    <div className={styles.table} role="group" aria-label="Table" tabIndex={0}>
      <table>
        <thead>{head && <tr>{cells(head, "th")}</tr>}</thead>
        <tbody>
          {body.map((row, place) => (
            <tr key={place}>{cells(row, "td")}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function alignment(align: AlignType | undefined): { textAlign?: "left" | "right" | "center" } {
  return align ? { textAlign: align } : {};
}

/** Where references lead; the first that defines one holds. */
function definitionsOf(tree: Root): Definitions {
  const found = new Map<string, Definition>();
  const look = (node: Nodes): void => {
    if (node.type === "definition" && !found.has(node.identifier)) {
      found.set(node.identifier, node);
    }
    if ("children" in node) {
      node.children.forEach(look);
    }
  };
  look(tree);
  return found;
}
