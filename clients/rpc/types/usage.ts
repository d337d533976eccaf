// What the types promise: `tsc --noEmit --strict` over this file holds, and each @ts-expect-error is an error.
import { createClient, RpcError, TransportError, type Status } from "@holdfast/rpc";

interface Order {
  id: string;
  items: string[];
}

interface Shop {
  "lightapi.net/market/createOrder/0.1.0": { params: { items: string[] }; result: Order };
  "lightapi.net/market/listOrders/0.1.0": { params?: { after?: string }; result: Order[] };
  "lightapi.net/market/ping/0.1.0": { result: "pong" };
}

const shop = createClient<Shop>({ url: "/rpc", jsonrpc: true, headers: async () => ({ authorization: "Bearer k" }) });

export async function typed(signal: AbortSignal): Promise<string> {
  const order: Order = await shop.call("lightapi.net/market/createOrder/0.1.0", { items: ["tea"] }, { signal });
  const orders: Order[] = await shop.call("lightapi.net/market/listOrders/0.1.0");
  const pong: "pong" = await shop.call("lightapi.net/market/ping/0.1.0");
  await shop.notify("lightapi.net/market/listOrders/0.1.0", { after: order.id });

  // @ts-expect-error there is no such method
  await shop.call("lightapi.net/market/dropOrders/0.1.0");
  // @ts-expect-error it takes params
  await shop.call("lightapi.net/market/createOrder/0.1.0");
  // @ts-expect-error it takes other params
  await shop.call("lightapi.net/market/createOrder/0.1.0", { items: "tea" });
  // @ts-expect-error it gives an order
  const text: string = await shop.call("lightapi.net/market/createOrder/0.1.0", { items: [] });

  return [pong, orders.length, text].join();
}

export async function untyped(): Promise<void> {
  const client = createClient();
  await client.call("any/method/at/all", { with: "anything" });
  const data = { items: ["tea"] };
  const form = { host: "h", service: "s", action: "a", version: "1", title: "Create", success: "/done", data };
  const order = await client.call<Order>(form);
  const first: string | undefined = order.items[0];
  // @ts-expect-error the version is missing
  await client.call({ host: "h", service: "s", action: first ?? "a" });
}

export function told(error: unknown): string | undefined {
  if (error instanceof RpcError) {
    const status: Status | undefined = error.status;
    return `${error.code} ${status?.code}`;
  }
  return error instanceof TransportError ? String(error.statusCode) : undefined;
}
