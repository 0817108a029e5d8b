// What ends a start: one line for what an operator can mend, a stack for a defect.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { lastWords, startError } from '#src/app/start-errors.ts';
import { ConfigError } from '#src/config.ts';

const thrownBy = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return error;
  }
};

test('a start that fails by a file of the environment names it and says what to do, without a stack', () => {
  const folder = '/proc/version/below-a-file';
  const words = lastWords(startError(thrownBy(() => mkdirSync(folder))));
  assert.equal(words, `${folder} is not below a folder`);
  const pseudo = '/proc/no-folder/read-models';
  assert.equal(
    lastWords(startError(thrownBy(() => mkdirSync(pseudo, { recursive: true })))),
    `${pseudo} cannot be created: its file system takes no folders; set DATA_DIR to a folder on a disk`,
  );
  const fault = new ConfigError([{ variable: 'PORT', problem: 'must be a whole number' }]);
  assert.equal(startError(fault), fault);
  assert.equal(lastWords(fault), 'wrong configuration:\n  PORT must be a whole number');
});

test('a defect is printed with its stack: a TypeError, and a file of ours that is missing', () => {
  const defects = [
    new TypeError('undefined is not a function'),
    thrownBy(() => readFileSync('/none/of/ours')),
  ];
  for (const defect of defects) {
    assert.equal(startError(defect), defect);
    assert.match(lastWords(startError(defect)), /\n\s+at .*start-errors\.test\.ts/);
  }
});
