import { useQuery } from "@tanstack/react-query";
import { reading } from "../api/queries.ts";
import { root } from "../api/root.ts";
import { Copied } from "../design/Copied.tsx";
import { Tag } from "../design/Tag.tsx";
import styles from "./Addresses.module.css";
import { Block } from "./Block.tsx";

/** Where the engine is reached by what, and which version it is. */
export function Addresses() {
  const health = useQuery(reading("GET /healthz", {}));
  const base = location.origin + root;
  const addresses = [
    ["HTTP API", `${base}/api`],
    ["MCP", `${base}/mcp`],
    ["JSON-RPC", `${base}/rpc`],
    ["WebSocket", `${base.replace(/^http/, "ws")}/ws/AGENT`],
  ] as const;
  return (
    <Block title="Addresses" aside={health.data && <Tag>version {health.data.version}</Tag>}>
      <dl className={styles.addresses}>
        {addresses.map(([name, address]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <Copied text={address} />
            </dd>
          </div>
        ))}
        <div>
          <dt>OpenAPI document</dt>
          <dd>
            <a href={`${root}/api/openapi.json`}>openapi.json</a>
          </dd>
        </div>
      </dl>
    </Block>
  );
}
