// The limit of one test and one hook under Bun, whose default of 5 s is too short for real processes and for builds.
import { setDefaultTimeout } from 'bun:test';

setDefaultTimeout(120_000);
