// What a node's error answer means. Codes are shared by opposite meanings (-32000: a revert, a limit, a block that is
// missing; -32015: a revert of Nethermind, a time limit of a proxy), so the text decides, of all clients that were met.
// test/adapters/payments/node-answers.test.ts has their real answers.
import { BaseError, HttpRequestError, RpcRequestError, TimeoutError } from 'viem';

type NodeAnswer =
  | { readonly kind: 'none' | 'timeout' }
  /** An answer that is not JSON-RPC. */
  | { readonly kind: 'http'; readonly status: number }
  | { readonly kind: 'rpc'; readonly code: unknown; readonly text: string };

/** null: the error is none of a request to a node. */
function answerOf(error: unknown): NodeAnswer | null {
  if (!(error instanceof BaseError)) return null;
  const cause = error.walk(isOfRequest);
  if (cause instanceof RpcRequestError) {
    const { code, details, data } = cause;
    return { kind: 'rpc', code, text: `${details} ${typeof data === 'string' ? data : ''}` };
  }
  if (cause instanceof TimeoutError) return { kind: 'timeout' };
  if (!(cause instanceof HttpRequestError)) return null;
  // Without a status, the node is not reached.
  return cause.status === undefined ? { kind: 'none' } : { kind: 'http', status: cause.status };
}

const isOfRequest = (error: unknown): boolean =>
  error instanceof RpcRequestError || error instanceof HttpRequestError || error instanceof TimeoutError;

/** Whether the error is of a request to the node, and not of reading its answer. */
export const isOfNode = (error: unknown): boolean => answerOf(error) !== null;

const isLimit = (code: unknown, text: string): boolean => LIMIT_CODES.has(code) || LIMIT.test(text);

/** JSON-RPC codes that only limits of the rate have: Alchemy, QuickNode, proxyd (of Base's public node). */
const LIMIT_CODES: ReadonlySet<unknown> = new Set([429, -32007, -32012, -32016, -32017]);
const LIMIT =
  /rate.?limit|too many (requests|rpc calls)|request (limit|count|rate)|(requests?|calls?|units?|credits?).{0,24}per[ -]?(second|minute|day|month)|per second|\/\s?sec(ond)?\b|credits|compute units|over capacity|throttl|quota|unauthori[sz]ed|authenticate|api.?key|healthy|offline|gateway time-?out|bad gateway|service unavailable|no available (server|node|upstream)/i;

/** The node does not have the block: it lags, as one of several behind one address may. */
const BEHIND =
  /header (not found|for hash not found)|unknown block|block (is )?(not (found|available)|out of range)|BlockOutOfRange|block not found|cannot query unfinalized data|beyond (current )?head|latest block number is|in the future|future block/i;
/** Of the execution API: no such block. */
const UNKNOWN_BLOCK = -39001;

/**
 * Whether the contract ended the call: it has no such function, or reverts. Nothing else is believed to be its answer: an
 * internal error, say, is an outage.
 */
export function isReverted(error: unknown): boolean {
  const answer = answerOf(error);
  if (answer?.kind !== 'rpc' || isOutage(error)) return false;
  return answer.code === 3 || REVERTED.test(answer.text);
}

const REVERTED =
  /revert|vm (execution|exception)|bad (instruction|jump)|invalid (opcode|jump)|opcode .{1,40}(not defined|invalid)|out of gas|stack underflow|function selector was not recognized/i;

/**
 * Whether the error says nothing about what was asked: no answer, a limit of the rate, no access, no healthy node behind a
 * proxy, a node that lags. An error that means none of these is an answer.
 */
export function isOutage(error: unknown): boolean {
  const answer = answerOf(error);
  if (answer === null) return false;
  if (answer.kind === 'http') return !REFUSED_STATUS.has(answer.status);
  if (answer.kind !== 'rpc') return true;
  const { code, text } = answer;
  return isLimit(code, text) || BEHIND.test(text) || code === UNKNOWN_BLOCK;
}

/** Nodes also answer a call that reverts with these, without JSON. */
const REFUSED_STATUS: ReadonlySet<number> = new Set([400, 422, 500]);

/**
 * Whether a smaller range of blocks may be a remedy. Proxies answer a range that their node does not read in time with 502,
 * 503 or 504: an outage is found by a single block that gets the same answer.
 */
export function isAboutRange(error: unknown): boolean {
  const answer = answerOf(error);
  if (answer === null || answer.kind === 'timeout') return true;
  if (answer.kind === 'http') return !ACCESS_STATUS.has(answer.status);
  return answer.kind === 'rpc' && (RANGE.test(answer.text) || !isLimit(answer.code, answer.text));
}

/** Access, and limits of the rate. */
const ACCESS_STATUS: ReadonlySet<number> = new Set([401, 402, 403, 407, 429]);
/** Texts of a refused range that also contain words of a limit. */
const RANGE = /block.?range|range of blocks|blocks? range|response size|more than \d+ (results|logs)/i;

/** Whether the node does not know the tag `safe`, or has no such block. */
export function isUnknownTag(error: unknown): boolean {
  const answer = answerOf(error);
  if (answer?.kind !== 'rpc' || isLimit(answer.code, answer.text)) return false;
  const { code, text } = answer;
  return code === UNKNOWN_BLOCK || (UNKNOWN_TAG.test(text) && (/\bsafe\b/.test(text) || !BEHIND.test(text)));
}

const UNKNOWN_TAG =
  /safe block|block.{0,12}\bsafe\b|\b(tag|safe)\b.{0,40}(not|un)[ -]?(supported|known|found|available)|(invalid|unsupported|unknown|unrecognized).{0,40}\b(tag|safe)\b|hex string without 0x prefix|invalid block ?(number|tag|param)|(invalid|cannot parse|could not parse).{0,20}block/i;

/** Whether the node keeps no state of a block that is this old. */
export function isStateGone(error: unknown): boolean {
  const answer = answerOf(error);
  return answer?.kind === 'rpc' && STATE_GONE.test(answer.text);
}

const STATE_GONE =
  /missing trie node|historical state|state.{0,60}(not available|unavailable|pruned|missing|not found)|pruned|no state available|archive|old data not available|distance to target block exceeds/i;
