// relay pay --schedule: buys runs of a schedule, one payment a run, and prints what became of them.
import type { readSchedule, ScheduleOrder, ScheduleResult } from '#src/app/buyer.ts';
import { showUsd } from '#src/domain/payment/price.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { CannotRun } from './exit.ts';
import { errorLine, policyLines, reportWait } from './pay-report.ts';
import { isUrl, readJsonSource } from './read-source.ts';
import { paint, print, printError, printJson, row, shown, table } from './terminal.ts';

export type ScheduleOptions = {
  /** The file with the order. */
  readonly schedule: string;
  readonly runs: number;
  readonly maxUsd: bigint;
  readonly relay: string;
  readonly limits: ScheduleOrder['limits'];
  readonly key: string | undefined;
  readonly ledger: string | undefined;
  readonly budgetUsd: bigint | undefined;
  readonly json: boolean;
  /** null: compare the offer only. */
  readonly privateKey: `0x${string}` | null;
};

export async function paySchedule(options: ScheduleOptions): Promise<boolean> {
  const { schedule: path, runs, relay, limits, privateKey, json, maxUsd } = options;
  if (path === '-' || isUrl(path))
    throw new CannotRun('--schedule needs a file: what was bought is recorded beside it');
  const value = await readJsonSource(path);
  const buyer = await import('#src/app/buyer.ts');
  const [calendar, clock, send] = [buyer.temporalCalendar(), buyer.systemClock(), buyer.limitedSend()];
  const body = named(path, () => buyer.readScheduleBody(value, calendar));
  const deps = { calendar, clock, send, waiting: reportWait };
  const readState = (url: string) => buyer.readSchedule({ send }, url);
  const order = { relay, body, runs, maxMicroUsd: maxUsd, limits };
  if (privateKey === null) {
    const result = await buyer.buySchedule(deps, { ...order, paying: null });
    report(await seen(options, result, null, readState), json);
    return result.outcome === 'not_paid';
  }
  const secret = Buffer.from(privateKey.slice(2), 'hex');
  const file = buyer.openScheduleFile(path);
  const { key = buyer.orderKey(secret, body), ledger: ledgerPath = file.ledgerPath, budgetUsd } = options;
  try {
    const ledger = buyer.openLedger({ path: ledgerPath, secret, budgetMicroUsd: budgetUsd ?? null, clock });
    const paying = { payer: buyer.keyPayer(privateKey), key, ledger, file };
    const result = await buyer.buySchedule(deps, { ...order, paying });
    report(await seen(options, result, file.path, readState), json);
    return result.outcome === 'funded';
  } finally {
    file.release();
  }
}

/** With what the relay says of the schedule now. `readState`: null if it says nothing readable. */
async function seen(
  { relay, runs: wanted }: ScheduleOptions,
  result: ScheduleResult,
  file: string | null,
  readState: (url: string) => ReturnType<typeof readSchedule>,
) {
  const { bought } = result;
  const url = bought && `${relay}/api/schedules/${bought.scheduleId}`;
  const state = url === null ? null : await readState(url);
  const runs = (bought?.runs ?? []).map(({ n, dueAt }) => {
    const { state: runState = 'funded', reason = null } = state?.runs.find((run) => run.n === n) ?? {};
    return { n, dueAt, state: runState, reason };
  });
  return { relay, result, wanted, url, file, status: state?.status ?? null, runs };
}

/** The message of a refusal names the file. */
function named<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!(cause instanceof OperatorError)) throw cause;
    throw new CannotRun(`${path}: ${cause.message}`, { cause });
  }
}

function report(
  { relay, result, wanted, url, file, status, runs }: Awaited<ReturnType<typeof seen>>,
  json: boolean,
): void {
  const { outcome, error, problem, policy, bought, signedMicroUsd } = result;
  const signedUsd = showUsd(signedMicroUsd).slice(1);
  const ok = outcome === 'funded' || outcome === 'not_paid';
  if (json) {
    const { member, expected, actual } = error ?? {};
    printJson({
      ok,
      outcome,
      error: error && { member, expected, actual },
      problem,
      policy,
      scheduleId: bought?.scheduleId ?? null,
      cancelToken: bought?.cancelToken ?? null,
      status,
      wantedRuns: wanted,
      fundedRuns: runs.length,
      signedUsd,
      runs,
      file,
      links: url === null ? {} : { schedule: url, runs: `${url}/runs` },
    });
    if (error !== null) printError(errorLine(error));
    return;
  }
  const lines = [...policyLines(relay, policy)];
  if (url !== null) {
    lines.push(
      ...(policy.length === 0 ? [] : ['']),
      ...table(
        ['run', 'due', 'state'],
        runs.map(({ n, dueAt, state, reason }) => [
          String(n),
          dueAt,
          shown(reason === null ? state : `${state}: ${reason}`),
        ]),
      ),
      '',
      row('schedule', `${url}${status === null ? '' : `, ${shown(status)}`}`),
      row(
        'payments signed',
        `$${signedUsd}; the wallet needs the price of a run when that run is due, and not before`,
      ),
      row('recorded in', `${file}: keep it`),
      row(
        'to cancel',
        bought?.cancelToken
          ? `curl -X DELETE -H 'authorization: Bearer ${bought.cancelToken}' '${url}'`
          : 'not possible: the relay returned no token',
      ),
    );
  }
  const text = `${OUTCOME_TEXT[outcome]} ${outcome === 'not_paid' ? '' : `Paid for: ${runs.length} of ${Math.max(runs.length, wanted)} runs.`}`;
  const why = error === null ? '' : ` ${errorLine(error)}`;
  print(...lines, '', `${paint(ok ? 'green' : 'red', text.trim())}${why}`);
}

/** Followed by how many runs are paid for, and the member that differs, if there is one. */
const OUTCOME_TEXT: Readonly<Record<ScheduleResult['outcome'], string>> = {
  funded: 'Bought.',
  not_paid: 'The offer is within your limits. Nothing was paid.',
  policy_refused: 'Not paid further.',
  relay_refused: 'The relay refused a payment, which can be charged while it is valid.',
  unverified: 'A payment was taken for something else than your schedule.',
  unfinished: 'No final answer. Run the same command again: it presents the same payment.',
};
