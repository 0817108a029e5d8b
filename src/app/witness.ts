// A witness of transparency logs: its key file, its state, and the server (C2SP tlog-witness).
import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { pinoLogger } from '#src/adapters/logging/pino.ts';
import { systemClock } from '#src/adapters/runtime/clock.ts';
import { serve } from '#src/adapters/runtime/serve.ts';
import { KeyFileError } from '#src/adapters/signing/owners-file.ts';
import {
  freshWitnessKeys,
  readWitnessKeys,
  WITNESS_NAME,
  type WitnessKeys,
} from '#src/adapters/signing/witness-keys.ts';
import { openWitnessState, type WitnessStateFile } from '#src/adapters/witness/state-sqlite.ts';
import { type VerifierKey, vkeyText } from '#src/domain/transparency/cosignature.ts';
import { witnessApp } from '#src/http/witness.ts';
import { acquireFileLock } from '#src/lib/files/file-lock.ts';
import { lazily } from '#src/lib/lazily.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import { urlHost } from '#src/lib/url-host.ts';
import type { LineLogger } from '#src/ports/logger.ts';
import { createWitness } from '#src/usecases/witness/add-checkpoint.ts';
import { verifierPrimitives } from './keys.ts';

export type WitnessOptions = {
  /** The keys of the logs that it witnesses; a key's name is the origin of its log. Called for each request. */
  readonly logs: () => readonly VerifierKey[];
  /** The private keys; created on the first start, mode 0600. */
  readonly keyFile: string;
  /** What was cosigned last of each log: a SQLite file, by default `<keyFile>.state`. Several processes may share it. */
  readonly stateFile?: string;
  /** The name of its cosignatures, a schema-less URL: required on the first start, and then in the key file. */
  readonly name?: string;
  /** `port` 0: any free one. */
  readonly listen: { readonly hostname: string; readonly port: number };
  /** Begin with a fresh state beside an existing key: it forgets what was cosigned. */
  readonly begin?: boolean;
  readonly logger: LineLogger;
};

export type RunningWitness = {
  /** Its submission prefix and monitoring prefix: `http://host:port`. */
  readonly url: string;
  readonly name: string;
  /** The verifier keys for policy files: Ed25519, then ML-DSA-44. Each signs every cosigned checkpoint. */
  readonly vkeys: readonly string[];
  /** The key file was created by this start. */
  readonly created: boolean;
  /** Accepts no more requests, answers those in flight, and frees everything. Again: the same promise. */
  stop(): Promise<void>;
};

/**
 * Starts a witness in this process. Throws an `OperatorError` (`KeyFileError`, `CannotListen`): an unusable key file or state, a
 * state that is missing although its key file exists, or an address that cannot be had.
 */
export async function startWitness(options: WitnessOptions): Promise<RunningWitness> {
  const { logs, listen, logger } = options;
  const { keys, state, created } = await openWitness(options);
  try {
    const clock = systemClock();
    const { signers } = keys;
    const witness = createWitness({ logs, state, signers, primitives: verifierPrimitives, clock, logger });
    const listening = await serve(witnessApp(witness, { clock, logger }), listen, clock);
    const stopped = lazily(async () => {
      await listening.stop();
      state.close();
    });
    return {
      url: `http://${urlHost(listen.hostname)}:${listening.port}`,
      name: keys.name,
      vkeys: vkeysOf(keys),
      created,
      stop: stopped,
    };
  } catch (error) {
    state.close();
    throw error;
  }
}

const vkeysOf = ({ signers }: WitnessKeys): readonly string[] => signers.map(({ key }) => vkeyText(key));

type Opened = { readonly keys: WitnessKeys; readonly state: WitnessStateFile; readonly created: boolean };

/** Processes that start at the same time do this one after another. */
async function openWitness(options: WitnessOptions): Promise<Opened> {
  const { keyFile, stateFile = `${keyFile}.state`, name, begin = false } = options;
  const known = existsSync(keyFile) ? await readWitnessKeys(keyFile) : null;
  if (known === null) demandName(name, keyFile);
  else refuseOtherName(known, keyFile, name);
  if (known !== null && !begin && !existsSync(stateFile)) throw new StateProblem(lostState(stateFile));
  mkdirSync(dirname(stateFile), { recursive: true, mode: 0o700 });
  const lock = acquireFileLock(stateFile, { timeoutMs: LOCK_MS });
  if (lock === null) throw new StateProblem(`the state ${stateFile} is in use by a start: try again`);
  try {
    return await openLocked({ keyFile, stateFile, name, begin });
  } finally {
    lock.release();
  }
}

const LOCK_MS = 5000;

type Files = Pick<WitnessOptions, 'keyFile'> & {
  readonly stateFile: string;
  readonly name: string | undefined;
  readonly begin: boolean;
};

async function openLocked({ keyFile, stateFile, name, begin }: Files): Promise<Opened> {
  const state = await openWitnessState(stateFile);
  try {
    const owner = state.owner();
    if (!existsSync(keyFile)) {
      if (owner !== null && !state.isEmpty()) throw new KeyFileError('key_file_missing', keyFile, PUT_BACK);
      const { keys, save } = await freshWitnessKeys(demandName(name, keyFile));
      // In this order: a key file whose state has no owner has lost its state.
      await state.setOwner(vkeysOf(keys).join('\n'));
      save(keyFile);
      return { keys, state, created: true };
    }
    const keys = await readWitnessKeys(keyFile);
    const vkeys = vkeysOf(keys).join('\n');
    if (owner === null && !begin) throw new StateProblem(lostState(stateFile));
    if (owner !== null && begin)
      throw new StateProblem(`the state ${stateFile} is there: start without --begin`);
    if (owner !== null && owner !== vkeys)
      throw new StateProblem(
        `the state ${stateFile} is the one of another witness: give each key file its own`,
      );
    if (owner === null) await state.setOwner(vkeys);
    await state.refuseForgotten();
    return { keys, state, created: false };
  } catch (error) {
    state.close();
    throw error;
  }
}

class StateProblem extends OperatorError {}

const PUT_BACK =
  'is not there, but its state is: put it back from its backup, or give a new witness another key file';

const lostState = (file: string): string =>
  `the state ${file} is missing or empty, but the key file exists: without it, two histories of one log could be cosigned. ` +
  'Put the newest state back if you have it. Only if it is lost, start once with --begin, or create a new key file, which is ' +
  'the safer choice';

function refuseOtherName(keys: WitnessKeys, keyFile: string, name: string | undefined): void {
  if (name !== undefined && name !== keys.name)
    throw new KeyFileError('key_file_unusable', keyFile, `has the name ${keys.name}: leave --name out`);
}

function demandName(name: string | undefined, keyFile: string): string {
  if (name !== undefined && WITNESS_NAME.test(name)) return name;
  const form = 'a schema-less URL without blanks and plus signs, such as witness.example/w1';
  throw new KeyFileError(
    'key_file_missing',
    keyFile,
    `is not there: create it with --name <name>, the name of the cosignatures, ${form}`,
  );
}

/** For the command line: JSON lines on standard error. */
export const witnessLogger = (): LineLogger => pinoLogger({ level: 'info', to: 'stderr' });
