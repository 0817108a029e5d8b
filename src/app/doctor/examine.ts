// Checks each part that the service needs, as the service would use it, beside a running service too. Nothing is changed
// but a scratch file, and no lock of the service is taken.
import { readFileSync } from 'node:fs';
import type { Config } from '#src/config.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { withTimeout } from '#src/lib/time.ts';
import { checkAgentDirectory } from './agent-directory.ts';
import { checkDisk } from './disk.ts';
import {
  type Checked,
  type DoctorFinding,
  fine,
  printedReason,
  problem,
  skipped,
  warning,
} from './finding.ts';
import { checkListen } from './listen.ts';
import {
  checkChain,
  checkDns,
  checkEgress,
  checkFacilitator,
  checkTerms,
  checkWitnesses,
} from './network.ts';
import { checkPublicAddress } from './public-address.ts';
import { checkEventLog, checkKeys, checkReadModels, checkVault } from './stores.ts';

const CHECKS: Readonly<Record<string, (config: Config, target: string) => Checked | Promise<Checked>>> = {
  listen: checkListen,
  disk: checkDisk,
  event_log: checkEventLog,
  signing_keys: checkKeys,
  read_models: checkReadModels,
  schedules: checkVault,
  open_files: checkOpenFiles,
  dns: checkDns,
  egress: checkEgress,
  payment_terms: checkTerms,
  chain: checkChain,
  facilitator: checkFacilitator,
  public_address: checkPublicAddress,
  web_bot_auth: checkAgentDirectory,
  witnesses: checkWitnesses,
};

/** A check that waits for longer is a problem of the part that it waits for. */
const LIMIT_MS = 15_000;

/** One finding after another, in the order of the checks. `target`: what is called, an https URL. Never throws. */
export async function* examine(
  config: Config,
  target: string,
): AsyncGenerator<DoctorFinding, void, undefined> {
  for (const [part, check] of Object.entries(CHECKS)) {
    const run = (async () => check(config, target))();
    const late = () => new OperatorError(`no answer within ${LIMIT_MS / 1000} s`);
    const found = await withTimeout(run, LIMIT_MS, late).catch((error: unknown) =>
      problem(printedReason(error)),
    );
    yield { part, ...found };
  }
}

/** Of each call: the client's connection, the target's, and one for DNS or the facilitator. */
const FILES_PER_CALL = 3;
const OTHER_FILES = 256;

function checkOpenFiles({ rates: { maxInFlight } }: Config): Checked {
  const limit = openFilesLimit();
  if (limit === null) return skipped('this system does not state how many files a process may open');
  const needed = maxInFlight * FILES_PER_CALL + OTHER_FILES;
  const text = `a process may open ${limit} files`;
  return limit >= needed
    ? fine(text)
    : warning(`${text}, and MAX_IN_FLIGHT=${maxInFlight} may need ${needed}: raise LimitNOFILE or ulimit -n`);
}

/** The soft limit of this process; null if the system does not state it. */
function openFilesLimit(): number | null {
  try {
    const [, soft] = /^Max open files +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? null : soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return null;
  }
}
