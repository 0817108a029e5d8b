// What the chain's node and the facilitator say to this configuration, once: for the operator's doctor.
import { formatUnits } from 'viem';
import type { FacilitatorProblem } from '#src/domain/monitoring/health.ts';
import { ChainUnavailable } from '#src/ports/chain-scan.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import { readAsset } from './asset.ts';
import { chainScan } from './chain-scan.ts';
import { facilitatorHealth } from './facilitator-health.ts';
import { facilitatorWatch } from './facilitator-watch.ts';
import { isCleartext, loginHeaders } from './login.ts';
import { NoAnswer, queryNode } from './node.ts';
import {
  type AssetFacts,
  assetOf,
  lowerHex,
  paymentTerms,
  UnusableTerms,
  type X402Settings,
} from './requirements.ts';

type Settings = X402Settings & { readonly confirmations: number | null };

const NODE_MS = 8000;

/** `setting`: which one the node contradicts; null: it gives no usable answer, `reason` says why. */
export type NodeVerdict =
  | {
      readonly ok: true;
      readonly asset: string;
      readonly decimals: number;
      readonly safeBlock: number;
      /** Of the payee, in tokens; null: the node keeps no state of that block. */
      readonly balance: string | null;
    }
  | {
      readonly ok: false;
      readonly setting: UnusableTerms['setting'] | null;
      readonly reason: string;
    };

/** Compares the node with the configuration, and reads the newest block that the books would be compared up to. */
export async function judgeNode(x402: Settings, clock: Clock): Promise<NodeVerdict> {
  try {
    const asset = assetOf(x402);
    const { rpcUrl, network, confirmations } = x402;
    const facts = await queryNode(rpcUrl, { ms: NODE_MS }, (client) => readAsset(client, asset));
    const scan = chainScan({ rpcUrl, network, asset: asset.address, confirmations, clock });
    const block = await scan.safeBlock();
    const { decimals } = facts;
    const held = await scan.balanceOf(lowerHex(x402.payTo), block.number);
    const balance = held.kind === 'known' ? formatUnits(held.amount, decimals) : null;
    return { ok: true, asset: asset.spelling, decimals, safeBlock: block.number, balance };
  } catch (error) {
    if (error instanceof UnusableTerms) return { ok: false, setting: error.setting, reason: error.message };
    if (!(error instanceof NoAnswer || error instanceof ChainUnavailable)) throw error;
    const why = error instanceof NoAnswer ? error.why : null;
    return { ok: false, setting: null, reason: why ?? error.code };
  }
}

export type FacilitatorVerdict = {
  readonly problem: FacilitatorProblem | null;
  /** Of the failure: a status, a code of the runtime. Contains no text of the facilitator. */
  readonly codes: readonly string[];
  /** Our clock minus the facilitator's; null: no difference of over 5 s was seen. */
  readonly skewSeconds: number | null;
  /** A login is sent without encryption. */
  readonly isLoginReadable: boolean;
};

/** Asks the facilitator what it supports, with our login. Throws `UnusableTerms`. */
export async function judgeFacilitator(x402: X402Settings, clock: Clock): Promise<FacilitatorVerdict> {
  let skewSeconds: number | null = null;
  const codes: string[] = [];
  const note: Logger['warn'] = (_, fields) => {
    if (typeof fields?.skewSeconds === 'number') skewSeconds = fields.skewSeconds;
    for (const code of [fields?.code, fields?.why]) if (typeof code === 'string') codes.push(code);
  };
  const logger: Logger = {
    info: () => undefined,
    warn: note,
    error: note,
    bug: () => undefined,
    condition(_, code, facts) {
      if (code !== null) note('', facts);
    },
  };
  const asset = assetOf(x402);
  const terms = paymentTerms(x402, asset, asset.known ?? UNKNOWN);
  const facilitatorUrl = x402.facilitatorUrl.replace(/\/+$/, '');
  const login = await loginHeaders(x402.login, clock);
  const watch = facilitatorWatch({ clock, logger });
  const health = await facilitatorHealth({ facilitatorUrl, login, terms, watch, clock, logger })();
  const problem = health === null || health.ok ? null : health.problem;
  return { problem, codes, skewSeconds, isLoginReadable: x402.login !== null && isCleartext(facilitatorUrl) };
}

/** Only the network and the scheme are compared with what a facilitator supports. */
const UNKNOWN: AssetFacts = { decimals: 6, domain: { name: 'unknown', version: '1' } };
