// The limit of one test and one hook of a single `bun test FILE`, as in test/run.ts. Bun applies a preload's limit to the
// first file only (1.4.4), so the runner gives the limit as an option.
import { setDefaultTimeout } from 'bun:test';

setDefaultTimeout(240_000);
