// The colours of the pages' style sheet, read from the file itself.
import { readFileSync } from 'node:fs';
import { rootPath } from '#test/support/process/runtime.ts';

const colours = [
  ...readFileSync(`${rootPath}/src/http/pages/page.css`, 'utf8').matchAll(
    /--([a-z]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);/g,
  ),
];
const schemeAt = (at: 2 | 3): Readonly<Record<string, string>> =>
  Object.fromEntries(colours.map((colour) => [colour[1] ?? '', colour[at] ?? '']));

/** By scheme and name: `PALETTE.light.ink`. */
export const PALETTE = { light: schemeAt(2), dark: schemeAt(3) } as const;
