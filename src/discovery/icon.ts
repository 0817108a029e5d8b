// The icon: a call that goes through the relay and comes out with a seal. A drawing for who reads SVG, and a picture of
// 16 by 16 for who asks for /favicon.ico, as browsers without SVG icons do.

const GROUND = '#0b5cad';

export const iconSvg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="5" fill="${GROUND}"/><g fill="none" stroke="#fff" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"><circle cx="12" cy="12" r="6"/><path d="M2 12h4M18 12h4M9.5 12l1.8 1.8 3.5-3.8"/></g></svg>
`;

/** `#` white, `.` ground, a space nothing. */
const PICTURE = [
  ' .............. ',
  '................',
  '.....######.....',
  '....#......#....',
  '...#........#...',
  '..#..........#..',
  '..#.......##.#..',
  '..#......##..#..',
  '###.##..##...###',
  '..#..####....#..',
  '..#...##.....#..',
  '...#........#...',
  '....#......#....',
  '.....######.....',
  '................',
  ' .............. ',
] as const;

/** An ICO file: one picture as a device-independent bitmap of one bit a pixel, rows from below, with its mask. */
export function iconIco(): Uint8Array<ArrayBuffer> {
  const size = PICTURE.length;
  const header = [0, 0, 1, 0, 1, 0];
  const image = [
    ...[40, size, size * 2].flatMap(word32),
    ...[1, 1].flatMap(word16),
    ...[0, 0, 0, 0, 2, 0].flatMap(word32),
    ...[...GROUND_BYTES, 0],
    ...[255, 255, 255, 0],
    ...rowsOf('#'),
    ...rowsOf(' '),
  ];
  const entry = [size, size, 2, 0, ...[1, 1].flatMap(word16), ...[image.length, 22].flatMap(word32)];
  return Uint8Array.from([...header, ...entry, ...image]);
}

/** Blue, green, red. */
const GROUND_BYTES = [5, 3, 1].map((at) => Number.parseInt(GROUND.slice(at, at + 2), 16));

/** A bit is set where the picture shows `sign`; each row is filled up to 32 bits. */
function rowsOf(sign: '#' | ' '): readonly number[] {
  return PICTURE.toReversed().flatMap((row) => {
    const bits = [...row].reduce((sum, pixel) => sum * 2 + (pixel === sign ? 1 : 0), 0);
    return [bits >> 8, bits & 255, 0, 0];
  });
}

const word16 = (value: number) => [value & 255, value >> 8];
const word32 = (value: number) => [value & 255, (value >> 8) & 255, (value >> 16) & 255, value >> 24];
