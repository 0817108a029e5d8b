// Compares what the record says of the chain with the chain itself: each round that stands, each charge that none of them has
// confirmed, and each refund. What the chain has is not compared again by an audit that continues this one.

import { type EventLocation, type Fault, type Finding, findingOf } from '#src/domain/audit/finding.ts';
import {
  blockFault,
  chargeFault,
  chargeFaults,
  refundFault,
  transfersFault,
} from '#src/domain/audit/judge-chain.ts';
import { accountKey, type ChainTransfer } from '#src/domain/payment/reconciliation.ts';
import type { ChainAudit as ChainReader } from '#src/ports/chain-scan.ts';
import type { Auditor } from './audit-log.ts';
import type { AuditedRound } from './stream-states.ts';

export type ChainChecked = {
  /** CAIP-2, of the node. */
  readonly network: string;
  readonly comparisons: number;
  /** That no comparison has confirmed. */
  readonly charges: number;
  readonly refunds: number;
  /** Rounds, charges and refunds on other networks: they are not checked. */
  readonly elsewhere: number;
};

type Options = {
  readonly record: Auditor['stated'];
  readonly chain: ChainReader;
  readonly onFinding: (finding: Finding) => void;
  /** Called after each round, charge and refund. */
  readonly onChecked: () => void;
};

/** Blocks and rounds whose transfers are read at once. */
const BLOCKS = 10_000;
const ROUNDS = 500;

/** Throws `ChainUnavailable`. */
export async function auditAgainstChain({
  record,
  chain,
  onFinding,
  onChecked,
}: Options): Promise<ChainChecked> {
  const network = await chain.network();
  const checked = { network, comparisons: 0, charges: 0, refunds: 0, elsewhere: 0 };
  /** Whether there is no fault. */
  const report = (faults: readonly (Fault | null)[], location: EventLocation): boolean => {
    const found = faults.filter((fault) => fault !== null);
    for (const fault of found) onFinding(findingOf(fault, location));
    return found.length === 0;
  };

  async function checkRounds(rounds: readonly AuditedRound[]): Promise<void> {
    const [oldest] = rounds;
    const newest = rounds.at(-1);
    if (newest === undefined || oldest === undefined) return;
    const scan = chain.scanOf(newest.round.asset);
    const transfers = await transfersOf(
      scan,
      newest.round.payee,
      oldest.round.fromBlock,
      newest.round.toBlock,
    );
    let begin = 0;
    for (const row of rounds) {
      const { round, location } = row;
      const block = blockFault(round, await scan.block(round.toBlock));
      let end = begin;
      while ((transfers[end]?.block ?? Number.POSITIVE_INFINITY) <= round.toBlock) end++;
      const compared = transfers.slice(begin, end);
      const faults = [
        block,
        transfersFault(round, compared),
        ...chargeFaults(round, compared, record.chargeOf),
      ];
      if (report(faults, location)) record.compared.round(row);
      begin = end;
      checked.comparisons++;
      onChecked();
    }
  }

  let batch: AuditedRound[] = [];
  for (const each of record.standing()) {
    if (each.round.network !== network) {
      checked.elsewhere++;
      continue;
    }
    if (!belongs(batch, each)) {
      await checkRounds(batch);
      batch = [];
    }
    batch.push(each);
  }
  await checkRounds(batch);

  for (const { stream, payment } of record.unconfirmed()) {
    const { reserved, settled } = payment;
    if (reserved.network !== network) {
      checked.elsewhere++;
      continue;
    }
    const finding = await chain.lookUp(reserved, settled.transaction);
    const location = { stream, revision: null, jobId: reserved.jobId, position: null };
    const isFound = report([chargeFault(payment, finding)], location);
    if (isFound && finding.outcome === 'paid') record.compared.charge(stream);
    checked.charges++;
    onChecked();
  }

  for (const [name, refund] of record.refunds()) {
    const { location, isCompared: _, ...stated } = refund;
    if (stated.network !== network) {
      checked.elsewhere++;
      continue;
    }
    const fault = refundFault(stated, await chain.transfersIn(stated.transaction));
    if (report([fault], location)) record.compared.refund(name, refund);
    checked.refunds++;
    onChecked();
  }
  return checked;
}

/** Of the same account, right after the others, and not too much with them. */
function belongs([oldest, ...more]: readonly AuditedRound[], { round }: AuditedRound): boolean {
  if (oldest === undefined) return true;
  const last = (more.at(-1) ?? oldest).round;
  return (
    more.length < ROUNDS &&
    accountKey(last) === accountKey(round) &&
    round.fromBlock === last.toBlock + 1 &&
    round.toBlock - oldest.round.fromBlock < BLOCKS
  );
}

async function transfersOf(
  scan: ReturnType<ChainReader['scanOf']>,
  payee: string,
  first: number,
  to: number,
): Promise<readonly ChainTransfer[]> {
  const found: ChainTransfer[] = [];
  for (let from = first; from <= to; ) {
    const part = await scan.scan({ payee, from, to, maxTransfers: Number.POSITIVE_INFINITY, payers: [] });
    found.push(...part.transfers);
    from = part.to + 1;
  }
  return found;
}
