// Exit code and message of a command that threw.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CannotRun, errorText, exitOf, FoundWrong, oneLine } from '#src/cli/exit.ts';
import { EventLogUnavailable } from '#src/ports/event-log.ts';

describe('a command that threw', () => {
  test('exits with 1 only if it found a problem', () => {
    assert.deepEqual(
      [new FoundWrong('x'), new CannotRun('x'), new Error('x'), 'x', undefined].map(exitOf),
      [1, 2, 2, 2, 2],
    );
  });

  test('prints the stack of a defect, and of nothing else', () => {
    const system = Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' });
    for (const known of [
      new CannotRun('x'),
      new EventLogUnavailable(),
      system,
      new Error('query', { cause: system }),
    ])
      assert.doesNotMatch(errorText(known), /\n/);
    const invalid = Object.assign(new TypeError('The "path" argument'), { code: 'ERR_INVALID_ARG_TYPE' });
    for (const defect of [new TypeError('a bug'), new Error('impossible'), invalid])
      assert.match(errorText(defect), /\n\s+at /);
  });

  test('prints one line, also if the message has several', () => {
    const lines: readonly (readonly [unknown, string])[] = [
      [new Error('one'), 'one'],
      [new Error('wrong:\n  PORT is\n\n  HOST is\n'), 'wrong: PORT is; HOST is'],
      ['thrown text', 'thrown text'],
      [new Error(''), 'unknown failure'],
    ];
    for (const [thrown, line] of lines) assert.equal(oneLine(thrown), line);
  });
});
