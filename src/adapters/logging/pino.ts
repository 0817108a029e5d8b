// Lines for the operator, one JSON object a line, written before the call returns, so that none is lost at exit.
// The callers decide what is logged; as a second protection, this masks what must never be in a log.
import { type DestinationStream, destination, pino, stdTimeFunctions } from 'pino';
import type { DetailLogger, LineLogger, LogFields } from '#src/ports/logger.ts';
import { maskedCause, maskedFields, maskedText } from './mask.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

type PinoLoggerOptions = {
  readonly level: LogLevel;
  /** Where lines go; a stream is for tests. */
  readonly to: 'stdout' | 'stderr' | DestinationStream;
  /** Fields of every line, read again for each line. */
  readonly context?: () => LogFields;
};

export function pinoLogger({ level, to, context }: PinoLoggerOptions): LineLogger & DetailLogger {
  const lines = pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      ...(context === undefined ? {} : { mixin: () => shown(context()) }),
    },
    typeof to === 'string' ? destination({ dest: to === 'stdout' ? 1 : 2, sync: true }) : to,
  );
  return {
    // One line a request: a line below the log level is not masked at all.
    debug(message, fields) {
      if (lines.isLevelEnabled('debug')) lines.debug(shown(fields), maskedText(message));
    },
    info: (message, fields) => lines.info(shown(fields), maskedText(message)),
    warn: (message, fields) => lines.warn(shownWithCause(fields), maskedText(message)),
    error: (message, fields) => lines.error(shownWithCause(fields), maskedText(message)),
    bug: (message, fields) =>
      lines.error({ code: 'internal_error', ...shownWithCause(fields) }, maskedText(message)),
  };
}

/** The text of a thrown error is untrusted: it may come from another system. */
function shownWithCause({ cause, ...fields }: LogFields & { cause?: unknown } = {}): Record<string, unknown> {
  return { ...shown(fields), ...(cause === undefined ? {} : { cause: maskedCause(cause) }) };
}

/** pino's own members of a line; a field of that name would make a second member of the same name. */
const OWN = new Set(['level', 'time', 'pid', 'msg']);

function shown(fields: LogFields = {}): Record<string, unknown> {
  const entries = Object.entries(maskedFields(fields));
  return Object.fromEntries(entries.map(([name, value]) => [OWN.has(name) ? `${name}_` : name, value]));
}
