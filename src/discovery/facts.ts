// The facts of a deployment that documents are built from, in addition to the route table and the limits.

import type { PolicyMode } from '#src/domain/destination/policy.ts';
import type { Mode, Route } from '#src/domain/event-fields.ts';
import type { Offer } from '#src/domain/monitoring/trust.ts';
import type { AskedFor } from '#src/domain/payment/price.ts';

/** How a deployment is configured, as far as its documents show it. */
export type Deployment = {
  /** PUBLIC_BASE_URL: absolute. */
  readonly baseUrl: string;
  readonly mode: Mode;
  /** Price of a call where payment is enforced. */
  readonly offer: Offer;
  readonly policyMode: PolicyMode;
  /** Calls of one payer to one target host; null where the mode has no quota. */
  readonly targetQuota: { readonly windowMs: number; readonly maxRequests: number } | null;
  /** Calls a minute by one client address. */
  readonly rateLimitPerMinute: number;
  /** Reads a minute by one client address, in one process. */
  readonly readsPerMinute: number;
  /** Executions at the same time in one process. */
  readonly maxInFlight: number;
  /** Callers may ask for what their target answers. */
  readonly returnsResponses: boolean;
  /** Which headers such an answer has, where the target sent them. */
  readonly returnedHeaders: readonly string[];
  /** Paid schedules; absent: off. */
  readonly schedules?: { readonly horizonDays: number };
  /** Days after which reads no longer return jobs, and receipts and decisions; the event log keeps everything. */
  readonly retentionDays: { readonly jobs: number; readonly receipts: number };
  /** Of the transparency log: how many, and the name of their quorum. null: it is unwitnessed. */
  readonly witnesses: { readonly configured: number; readonly quorum: string } | null;
};

/** `baseUrl` has no trailing slash. */
export type Facts = Deployment & {
  /** When this process built its documents: RFC 3339, UTC. */
  readonly generatedAt: string;
  /** null in demo mode. */
  readonly askedFor: Readonly<Record<Route, AskedFor>> | null;
  /** What a new schedule asks for; null in demo mode, and where paid schedules are off. */
  readonly askedForSchedule: AskedFor | null;
  /** MCP protocol versions that the server speaks, the newest first. */
  readonly mcpVersions: readonly string[];
};

/** From CAIP-2 to the common name. */
const NETWORK_NAMES: Readonly<Record<string, string>> = {
  'eip155:8453': 'Base',
  'eip155:84532': 'Base Sepolia',
};

export const networkName = (network: string): string => NETWORK_NAMES[network] ?? network;

/** Decimal US dollars: `$0.003` is `0.003`. */
export const usd = ({ price }: Offer): string => price.replace(/^\$/, '');
