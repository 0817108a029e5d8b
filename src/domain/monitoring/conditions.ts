// What can be wrong with a part of the service: each condition is declared here once, with the sentence that the log,
// `/health`, the doctor and the status page state, and with the alert rule that fires for it. No sentence contains a path, an
// address or a key.
import { REMEDY } from '../damage.ts';
import { ATTENTION } from './alert-rules.ts';

/**
 * Values for a sentence's placeholders, also as fields of the log line. `item`: which of several of its kind. `hint`: what the
 * log says after the sentence; it may name files.
 */
export type ConditionFacts = { readonly item?: string; readonly hint?: string } & Readonly<
  Record<string, string | number | null | undefined>
>;

export type Declared = {
  /** What is wrong, what follows for callers and what to do. `{name}`: the fact of that name. */
  readonly message: string;
  readonly level: 'warn' | 'error';
  /** The rule of `deploy/prometheus/rules.yaml` that fires, or why none does. */
  readonly alert: string | { readonly none: string };
};

export type DeclaredPart = {
  /** The log line when nothing is wrong with the part any more. */
  readonly over: string;
  readonly codes: Readonly<Record<string, Declared>>;
};

const error = (alert: Declared['alert'], message: string): Declared => ({ level: 'error', alert, message });
const warn = (alert: Declared['alert'], message: string): Declared => ({ level: 'warn', alert, message });

const MEND = `The operator has to ${REMEDY.whole}.`;
const UNCHARGED = 'paid calls answer 503, nothing is charged';
const NO_CALL = 'no call is executed';
const UNSIGNED = 'no checkpoint is signed';
const OTHER_PART = { none: 'what follows for callers is the condition of another part' };
const OTHER_PROOF = { none: 'a restored log is found by witnesses and by other generations too' };
const AT_START = { none: 'the next start tries again; nothing follows before' };

export const CONDITIONS = {
  eventLog: {
    over: 'the event log accepts events again',
    codes: {
      unavailable: error('RelayEventLogDown', `The event log does not answer: ${NO_CALL}.{damage}`),
      not_writable: error('RelayEventLogDown', `The event log accepts no events: ${NO_CALL}.{damage}`),
      replaced: error(
        'RelayEventLogDown',
        `The file of the event log was removed or replaced while the service runs: ${NO_CALL} until the service is started again.{damage}`,
      ),
      damaged: error(
        'RelayEventLogDown',
        `The file of the event log is damaged: ${NO_CALL}. ${MEND}{damage}`,
      ),
      damaged_events: error(
        'RelayEventsDamaged',
        `{events}: what needs them fails, other calls are executed. ${MEND}`,
      ),
    },
  },
  signingKey: {
    over: 'a signing key is valid: calls are executed',
    codes: {
      no_signing_key: error(
        'RelayNoSigningKey',
        `This relay has no valid signing key{validFrom}: ${NO_CALL}.`,
      ),
    },
  },
  transparencyLog: {
    over: 'checkpoints are signed again: the last one is a part of the tree',
    codes: {
      checkpoint_unreadable: error(
        'RelayNoCheckpoint',
        `The last checkpoint of the event log cannot be read: ${UNSIGNED}.`,
      ),
      checkpoint_forgotten: error(
        'RelayEventsMissing',
        'The event log lacks events that this relay acknowledged: it was restored from an older backup, or lost its end. No call is executed until the operator decides.',
      ),
      checkpoint_not_signed: error(
        'RelayNoCheckpoint',
        `The last checkpoint of the event log is not signed by a checkpoint key of this relay: ${UNSIGNED}.`,
      ),
      history_cut: error(
        'RelayNoCheckpoint',
        `Receipts or key events that the last checkpoint covers are missing: ${UNSIGNED}.`,
      ),
      history_rewritten: error(
        'RelayNoCheckpoint',
        `Receipts or key events differ from those that the last checkpoint covers: ${UNSIGNED}.`,
      ),
      checkpoint_overdue: warn('RelayNoCheckpoint', 'Receipts have waited over a minute for a checkpoint.'),
    },
  },
  readModels: {
    over: 'the read models answer again',
    codes: {
      unavailable: warn(
        'RelayReadModelsDown',
        'The read models are unavailable: reads answer 503, calls are executed.{why}',
      ),
      rebuilding: warn(
        'RelayReadModelsDown',
        'The read models are built again from the event log: reads answer 503 until then, calls are executed.',
      ),
    },
  },
  projections: {
    over: 'the read models have caught up with the event log',
    codes: {
      stopped: error(
        'RelayProjectionLag',
        `The read models stop before {place}: what was recorded later is not shown. ${MEND}`,
      ),
      newer_release: error(
        'RelayProjectionLag',
        'The read models stop before {place}, which a newer release has written: what was recorded later is not shown, and what needs such an event is answered 503. Start the newer release.',
      ),
      lagging: warn(
        'RelayProjectionLag',
        `The read models lag the event log by over ${ATTENTION.lagMs / 1000} s: new jobs and receipts are not shown.`,
      ),
    },
  },
  facilitator: {
    over: 'the facilitator answers paid calls again',
    codes: {
      no_answer: warn('RelayFacilitatorDown', `The facilitator does not answer: ${UNCHARGED}.`),
      login_refused: error(
        'RelayFacilitatorRefusesLogin',
        `The facilitator refuses our login: ${UNCHARGED}.`,
      ),
      failing: warn('RelayFacilitatorDown', `The facilitator gives no usable answer: ${UNCHARGED}.`),
      unsupported: error(
        'RelayFacilitatorDown',
        `The facilitator does not support our scheme and network: ${UNCHARGED}.`,
      ),
      internal_error: error(
        'RelayDefect',
        'A defect of this service prevents questions to the facilitator: the log has it.',
      ),
    },
  },
  facilitatorClock: {
    over: 'the clock of the facilitator agrees with ours',
    codes: {
      differs: warn(
        { none: 'RelayFacilitatorDown fires if it refuses payments for it' },
        'The clock of the facilitator differs from ours by {skewSeconds} s: payments and our login may be judged expired or not yet valid.',
      ),
    },
  },
  chain: {
    over: 'the node of the chain answers, and the books are compared with the chain again',
    codes: {
      no_answer: warn(
        'RelayChainNodeDown',
        'The node of X402_RPC_URL does not answer: settlements whose answer was lost stay open, the books are not compared. A service that started without it answers paid calls 503.',
      ),
      other_chain: error(
        'RelayChainNodeWrong',
        'The node of X402_RPC_URL serves another chain than that of the payments: settlements whose answer was lost stay open. A service that started without a node answers paid calls 503.',
      ),
      no_safe_block: warn(
        'RelayChainNodeDown',
        'The node of X402_RPC_URL has no block that is final: the books are not compared with the chain.',
      ),
      unchecked: warn(
        'RelayChainNodeDown',
        `The node of X402_RPC_URL has given no usable answer about the asset since the start: ${UNCHARGED}. The log states why.`,
      ),
      books_differ_from_chain: error(
        'RelayBooksDifferFromChain',
        'The balance of X402_PAY_TO and the transfers that the node shows differ by {units} units in the blocks {fromBlock} to {toBlock}: these blocks do not count, and are read again; calls are executed. Compare with another node.',
      ),
      not_compared: warn(
        'RelayNotReconciled',
        'No block of the chain was compared with the books since {since}: payments of unknown fate stay open, and charges are not confirmed; calls are executed. The log states why.',
      ),
    },
  },
  chainNode: {
    over: 'the node of X402_RPC_URL answers and fits the configuration: paid calls are taken',
    codes: {
      unfit: error(
        'RelayChainNodeWrong',
        `The node of X402_RPC_URL does not fit the configuration ({problem}): ${UNCHARGED}.`,
      ),
    },
  },
  chainLookUps: {
    over: 'the chain answers about payments again',
    codes: {
      no_answer: warn(
        { none: 'RelaySettlementsUnconfirmed and RelayPaymentUnknown fire for the payments' },
        'The chain gave no usable answer about a payment: its settlement stays open.',
      ),
    },
  },
  schedules: {
    over: 'runs of schedules are sold and started again',
    codes: {
      wrong_clock: error(
        'RelaySchedulesHeld',
        'The clock of this machine differs by {differsMs} ms from that of the database, or has jumped: no run of a schedule is sold or started until both agree for a minute.',
      ),
      vault_unavailable: warn(
        'RelaySchedulesHeld',
        'The vault of the schedules does not answer: no run of a schedule is sold or started; calls are executed.',
      ),
      vault_damaged: error(
        'RelaySchedulesHeld',
        'The vault of the schedules cannot be opened: no run of a schedule is sold or started; calls are executed. The log names the file and what to do.',
      ),
      runner_held: error(
        'RelayEventsMissing',
        'The event log lacks events that this relay acknowledged: no run of a schedule is sold or started until the operator decides.',
      ),
    },
  },
  recovery: {
    over: 'every interrupted job was closed',
    codes: {
      unclosable: error(
        'RelayJobsUnclosable',
        'Interrupted jobs cannot be closed: their callers wait for a receipt. Recovery repeats, at least every 5 minutes.',
      ),
    },
  },
  projector: {
    over: 'the read models are projected again',
    codes: {
      failing: warn(
        'RelayProjectionLag',
        'Events cannot be projected into the read models: the projector repeats.',
      ),
    },
  },
  purge: {
    over: 'old rows are purged again',
    codes: {
      failing: warn(
        { none: 'nothing follows before the disk is full' },
        'Old rows cannot be purged: the purge repeats in a minute.',
      ),
    },
  },
  announcedKeys: {
    over: 'the keys of the event log can be read again',
    codes: {
      unreadable: warn(
        'RelayNoSigningKey',
        'The keys of the event log cannot be read: this process keeps those that it knows.',
      ),
    },
  },
  keyFile: {
    over: 'the key file fits again',
    codes: {
      unreadable: warn(AT_START, 'The key file cannot be read: this process keeps the keys that it has.'),
      other_secret: warn(
        AT_START,
        'The key file contains another HMAC secret now: this process keeps the keys that it has.',
      ),
      no_receipt_key: warn(
        AT_START,
        'The key file contains no valid receipt key: this process keeps the keys that it has.',
      ),
      retired: warn(
        { none: 'RelayNoSigningKey fires when the key expires' },
        'The receipt key of this process was retired, and its key file has no other: copy the key file of the machine that rotated the keys before the own key expires.',
      ),
    },
  },
  checkpointFile: {
    over: 'the newest checkpoint is kept again',
    codes: {
      foreign: warn(
        OTHER_PROOF,
        'The file of the newest checkpoint contains none of this transparency log: it is left unchanged, and none is kept.',
      ),
      unreadable: warn(
        OTHER_PROOF,
        'The file of the newest checkpoint cannot be read: it cannot prove that the event log was restored from a backup.',
      ),
      unwritable: warn(
        OTHER_PROOF,
        'The file of the newest checkpoint cannot be written: the newest checkpoint is not kept.',
      ),
    },
  },
  logMemory: {
    over: 'the event log in use is remembered',
    codes: {
      unwritable: warn(
        AT_START,
        'The event log in use cannot be remembered: an empty event log would not be refused at a start.',
      ),
    },
  },
  witness: {
    over: 'a witness cosigns again',
    codes: {
      refusing: warn('RelayNoQuorum', 'A witness does not cosign the newest checkpoint: {item}, {reason}.'),
      unproven: error(
        'RelayNoQuorum',
        'A witness states a larger size than the newest checkpoint of this log has, and publishes no checkpoint that proves it: {witness}. Calls and checkpoints continue unless a quorum of the witnesses states one; compare with its operator.',
      ),
    },
  },
  quotas: {
    over: 'Postgres answers again: all processes count quotas together',
    codes: {
      single: warn(
        'RelayReadModelsDown',
        'Postgres does not count quotas: each process counts alone until it does.',
      ),
    },
  },
  traces: {
    over: 'the trace collector accepts spans again',
    codes: {
      dropped: warn(OTHER_PART, 'The trace collector does not accept spans: they are dropped.'),
    },
  },
} as const satisfies Readonly<Record<string, DeclaredPart>>;

export type Part = keyof typeof CONDITIONS;
export type CodeOf<P extends Part> = keyof (typeof CONDITIONS)[P]['codes'] & string;

export const declared = (part: Part, code: string): Declared => {
  const { codes }: DeclaredPart = CONDITIONS[part];
  const found = codes[code];
  if (found === undefined) throw new Error(`the condition ${part} ${code} is not declared`);
  return found;
};

/** The condition's sentence with its facts; a fact that is not known is left out. */
export const sentenceOf = (part: Part, code: string, facts: ConditionFacts = {}): string =>
  declared(part, code).message.replace(/\{(\w+)\}/g, (_, name: string) => `${facts[name] ?? ''}`);
