// Compares the node with the configuration: at the start, and until it has answered once.
import type { AbortSignalLike } from '#src/lib/time.ts';
import type { Clock } from '#src/ports/clock.ts';
import type { Logger } from '#src/ports/logger.ts';
import { readAsset } from './asset.ts';
import { NoAnswer, queryNode } from './node.ts';
import { type Asset, type AssetFacts, UnusableTerms } from './requirements.ts';

/** How long the start waits for the node: of an asset that the package knows, and of any other. */
const KNOWN_START_MS = 3000;
const START_MS = 30_000;
const PAUSE_MS = 1000;
/** Time limit of a check that a paid call waits for. */
const CHECK_MS = 4000;

export type NodeCheck = {
  /** Of the contract; while the node does not answer, as the package knows the asset. */
  readonly facts: AssetFacts;
  /** Whether the node was found to serve this chain and this asset. Bounded in time, never throws. */
  isChecked(): Promise<boolean>;
};

type Options = {
  readonly rpcUrl: string;
  readonly asset: Asset;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly stopping?: AbortSignalLike | undefined;
};

/**
 * Throws `UnusableTerms` if the node contradicts the configuration, or if it does not answer within 30 s and the package
 * does not know the asset. A known asset starts without the node: 402 is answered, and paid calls are not taken before the
 * node has answered.
 */
export async function checkNode({ rpcUrl, asset, clock, logger, stopping }: Options): Promise<NodeCheck> {
  const read = (ms: number) =>
    queryNode(rpcUrl, { ms, signal: stopping }, (client) => readAsset(client, asset));
  const { known } = asset;
  const until = clock.monotonic() + START_MS;
  for (;;) {
    try {
      const facts = await read(KNOWN_START_MS);
      return { facts, isChecked: async () => true };
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      if (known !== null) break;
      if (stopping?.aborted || clock.monotonic() > until) {
        const what = 'the decimals and the EIP-712 domain of X402_ASSET cannot be read';
        throw new UnusableTerms('rpcUrl', `does not answer: ${what}`);
      }
    }
    await clock.sleep(PAUSE_MS, stopping);
  }
  logger.condition('chain', 'unchecked');
  return { facts: known, isChecked: laterCheck({ known, read, clock, logger }) };
}

/** One check at a time, at most one a second, until one succeeds. */
function laterCheck({
  known,
  read,
  clock,
  logger,
}: {
  readonly known: AssetFacts;
  readonly read: (ms: number) => Promise<AssetFacts>;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly logger: Logger;
}): NodeCheck['isChecked'] {
  let isDone = false;
  let last: { readonly atMs: number; readonly check: Promise<boolean> } | null = null;

  async function check(): Promise<boolean> {
    try {
      const facts = await read(CHECK_MS);
      if (!areEqual(facts, known)) {
        throw new UnusableTerms('asset', 'states another EIP-712 domain than known: restart the service');
      }
      isDone = true;
      logger.condition('chainNode', null);
      logger.condition('chain', null);
    } catch (error) {
      if (error instanceof UnusableTerms)
        logger.condition('chainNode', 'unfit', { setting: error.setting, problem: error.message });
    }
    return isDone;
  }

  return async () => {
    if (isDone) return true;
    const atMs = clock.monotonic();
    if (last === null || atMs - last.atMs >= PAUSE_MS) last = { atMs, check: check() };
    return last.check;
  };
}

const areEqual = (a: AssetFacts, b: AssetFacts): boolean =>
  a.decimals === b.decimals && a.domain.name === b.domain.name && a.domain.version === b.domain.version;
