import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { reading } from "../api/queries.ts";
import { root } from "../api/root.ts";
import type { KeyList, Me, MemoryOwners, RunPage } from "../api/schema.ts";
import { Copied } from "../design/Copied.tsx";
import { cli } from "../design/commands.ts";
import { Tag } from "../design/Tag.tsx";
import { Icon } from "../shell/Icon.tsx";
import { useHealth } from "../shell/health.ts";
import { useIsAdmin, useMe } from "../shell/identity.ts";
import { visits } from "../shell/visits.ts";
import { Block } from "./Block.tsx";
import styles from "./Steps.module.css";
import { until } from "./lively.ts";
import { STEPS, type Step, isOfProgram, progress } from "./steps.ts";

const ADMINISTRATIVE: ReadonlySet<Step> = new Set(["model", "meaning", "programs"]);

/** What to do first; each step is ticked by itself. */
export function Steps() {
  const me = useMe();
  const isAdmin = useIsAdmin();
  const runs = useQuery({
    ...reading("GET /api/runs", { query: { limit: 1 } }),
    ...until(({ runs }: RunPage) => runs.length > 0),
  });
  const owners = useQuery({
    ...reading("GET /api/memories/owners", { query: { limit: 1 } }),
    ...until(({ owners }: MemoryOwners) => owners.length > 0),
  });
  const keys = useQuery({
    ...reading("GET /api/keys", {}),
    ...until(({ keys }: KeyList) => keys.some(isOfProgram)),
    enabled: isAdmin,
  });
  const health = useHealth();
  const found = progress({
    runs: runs.data?.runs,
    owners: owners.data?.owners,
    visits: visits(),
    keys: keys.data?.keys,
    parts: health.data?.parts,
  });
  const shown = STEPS.filter((step) => isAdmin || !ADMINISTRATIVE.has(step));
  const done = shown.filter((step) => found[step]).length;
  const texts = texted(me);
  return (
    <Block
      title="First steps"
      aside={
        <Tag tone={done === shown.length ? "good" : "plain"}>
          {done} of {shown.length} done
        </Tag>
      }
    >
      <ol className={styles.steps}>
        {shown.map((step) => (
          <li key={step} className={styles.step} data-done={found[step]}>
            <span className={styles.mark}>
              {found[step] && <Icon name="done" />}
              <span className="hidden-label">{found[step] ? "Done: " : "To do: "}</span>
            </span>
            <div className={styles.text}>{texts[step]}</div>
          </li>
        ))}
      </ol>
    </Block>
  );
}

function texted(me: Me): Readonly<Record<Step, ReactNode>> {
  return {
    talk: (
      <>
        <h3>
          <Link to="/chat/{-$agent}/{-$session}">Talk to an agent</Link>
        </h3>
        <p>It answers even without a language model, and remembers what you tell it about yourself.</p>
      </>
    ),
    look: (
      <>
        <h3>
          <Link to="/sessions/{-$conversation}">Browse your sessions</Link>
        </h3>
        <p>Every conversation is stored event by event. Go back to any event, and fork from there.</p>
      </>
    ),
    remember: (
      <>
        <h3>
          <Link to="/memory/{-$memory}">Browse memories</Link>
        </h3>
        <p>
          Say “I live in Bonn” in the chat, or add a memory yourself:{" "}
          <Copied text={cli("memory", "add", "--user", me.user, "lives in Bonn")} />
        </p>
      </>
    ),
    model: (
      <>
        <h3>Connect a language model</h3>
        <p>
          Start the engine with the model's name and API key, for example{" "}
          <Copied text="HOLDFAST_LLM__MODEL=anthropic:NAME ANTHROPIC_API_KEY=… holdfast up" />
        </p>
      </>
    ),
    meaning: (
      <>
        <h3>Turn on search by meaning</h3>
        <p>
          Download an embedding model once: <Copied text={cli("models", "fetch")} />
        </p>
      </>
    ),
    programs: (
      <>
        <h3>Connect other programs</h3>
        <p>
          MCP clients connect to <Copied text={`${location.origin}${root}/mcp`} />
          {me.local && "; on this machine they need no key yet"}. Create a key for a program with{" "}
          <Copied text={cli("keys", "create", "--label", "NAME")} />
        </p>
        {me.local && (
          <p>
            After the first key is created, this page needs to sign in, too: run <code>holdfast keys link</code>.
          </p>
        )}
      </>
    ),
  };
}
