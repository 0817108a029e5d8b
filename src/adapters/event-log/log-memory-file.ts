// Remembers the event log in a file of DATA_DIR, for a key file that this process may not change.
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { parsedJson } from '#src/domain/canonical-json.ts';
import { isKnownLog } from '#src/domain/signing-keys/known-log.ts';
import { findText, replaceFile } from '#src/lib/files/durable.ts';
import { OperatorError } from '#src/lib/operator-error.ts';
import type { LogMemory } from '#src/ports/log-memory.ts';

/** `read` throws `OperatorError` for a file with other content. */
export const logMemoryFile = (path: string): LogMemory => ({
  place: path,
  read() {
    const text = findText(path);
    if (text === null) return null;
    const content = parsedJson(text);
    if (isKnownLog(content)) return content;
    throw new OperatorError(
      `${path} is damaged: it states which event log is in use; put it back from a backup, or move it away if the event log is the right one`,
    );
  },
  write(log) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    replaceFile(path, `${JSON.stringify(log, null, 2)}\n`);
  },
});
