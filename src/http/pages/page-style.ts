// The one style sheet of all pages, and its colours. It loads nothing: system fonts, no pictures. It follows the
// reader's light or dark scheme; a test computes the contrast of every colour that carries text.

/** Custom properties by scheme: `ink` is `var(--ink)`. Drawings are made of them, so that they follow the scheme. */
export const PALETTE = {
  light: {
    paper: '#ffffff',
    card: '#f6f8fa',
    ink: '#1c2128',
    muted: '#57606a',
    line: '#d0d7de',
    grid: '#e3e8ee',
    accent: '#0b5cad',
    ok: '#176f32',
    bad: '#b3202c',
    warn: '#855600',
  },
  dark: {
    paper: '#0f141a',
    card: '#181f27',
    ink: '#e3e8ee',
    muted: '#9ba7b4',
    line: '#36404b',
    grid: '#28313a',
    accent: '#78b4f5',
    ok: '#5cc579',
    bad: '#ff8a85',
    warn: '#dca83c',
  },
} as const;

type Colours = Readonly<Record<keyof (typeof PALETTE)['light'], string>>;

const properties = (colours: Colours) =>
  Object.entries(colours)
    .map(([name, value]) => `--${name}:${value};`)
    .join('');

/** `stroke-ok`, `fill-ok` and so on, of every colour: a style attribute would not pass the page's policy. */
const drawing = Object.keys(PALETTE.light)
  .map((name) => `.stroke-${name}{stroke:var(--${name})}.fill-${name}{fill:var(--${name})}`)
  .join('');

const SHEET = `
:root{color-scheme:light dark;${properties(PALETTE.light)}}
@media (prefers-color-scheme:dark){:root{${properties(PALETTE.dark)}}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;overflow-wrap:break-word}
a{color:var(--accent);text-underline-offset:.15em}
a:hover{text-decoration-thickness:2px}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px;border-radius:2px}
main:focus{outline:none}
.skip{position:absolute;left:1rem;top:-5rem;background:var(--paper);padding:.5rem 1rem;z-index:1}
.skip:focus{top:.5rem}
.bar,main,.foot{max-width:48rem;margin:0 auto;padding-left:1rem;padding-right:1rem}
.wide .bar,.wide main,.wide .foot{max-width:72rem}
header,footer{border:0 solid var(--line)}
header{border-bottom-width:1px}
footer{border-top-width:1px;margin-top:4rem;color:var(--muted);font-size:.875rem}
.bar{display:flex;flex-wrap:wrap;align-items:center;gap:.25rem 1.5rem;padding-top:.75rem;padding-bottom:.75rem}
.brand{font-weight:650;color:var(--ink);text-decoration:none;display:inline-flex;align-items:center;gap:.5rem;margin-right:auto}
.brand svg{width:1.375rem;height:1.375rem}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;margin:0;padding:0}
nav a{display:inline-block;padding:.25rem 0}
main nav ul{margin:0 0 1rem}
header nav a{text-decoration:none}
header nav a:hover{text-decoration:underline}
[aria-current=page]{color:var(--ink);font-weight:600}
.foot{padding-top:1.5rem;padding-bottom:2.5rem}
main{padding-top:2.5rem}
h1,h2,h3,h4{line-height:1.25;margin:2.25rem 0 .75rem;text-wrap:balance;overflow-wrap:anywhere}
h1{font-size:clamp(1.625rem,1.2rem + 2vw,2.25rem);margin-top:0;letter-spacing:-.01em}
h2{font-size:1.375rem;margin-top:3rem}
h3{font-size:1.0625rem}
h4{font-size:1rem}
p,ul,ol,dl,pre,table,figure{margin:0 0 1rem}
li{margin:.25rem 0}
.lead{font-size:1.1875rem;line-height:1.5;color:var(--muted);max-width:42rem}
.muted,figcaption,.note{color:var(--muted)}
.note{font-size:.875rem}
code,pre,kbd{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.875em}
code{overflow-wrap:anywhere}
pre{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.875rem 1rem;overflow-x:auto;line-height:1.5;font-size:.8125rem;tab-size:2}
pre code{font-size:inherit;overflow-wrap:normal}
.wrap{white-space:pre-wrap;overflow-wrap:anywhere}
.scroll{overflow-x:auto;margin:0 0 1rem}
.scroll table{margin:0}
table{border-collapse:collapse;width:100%;font-size:.9375rem}
caption{text-align:left;color:var(--muted);padding-bottom:.5rem}
th,td{text-align:left;vertical-align:top;padding:.5rem 1rem .5rem 0;border-bottom:1px solid var(--line)}
th:last-child,td:last-child{padding-right:0}
th{font-weight:600}
thead th{color:var(--muted);font-size:.8125rem}
.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
time{white-space:nowrap;font-variant-numeric:tabular-nums}
.facts{display:grid;grid-template-columns:9rem minmax(0,1fr);gap:.375rem 1.5rem}
.facts dt{color:var(--muted)}
.facts dd{margin:0;min-width:0;overflow-wrap:anywhere}
.facts code{font-size:.9375em}
@media (max-width:30rem){.facts{display:block}.facts dd{margin-bottom:.5rem}}
.cards,.tiles{display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(min(15rem,100%),1fr));padding:0;margin:0 0 1rem;list-style:none}
.three{grid-template-columns:repeat(auto-fit,minmax(min(12rem,100%),1fr))}
.card,.tiles>div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:1rem 1.125rem;margin:0;min-width:0}
.card>:first-child{margin-top:0}
.card>:last-child{margin-bottom:0}
.card ul{padding-left:1.125rem}
.tiles{grid-template-columns:repeat(auto-fit,minmax(min(9rem,100%),1fr))}
.tiles dt{color:var(--muted);font-size:.875rem}
.tiles dd{margin:.125rem 0 0;font-size:1.5rem;font-weight:600;line-height:1.25;font-variant-numeric:tabular-nums}
.tiles .note{font-weight:400;margin:.25rem 0 0}
.pill{display:inline-block;border:1px solid;border-radius:1rem;padding:0 .625rem;font-size:.8125rem;font-weight:600;line-height:1.5rem;white-space:nowrap}
.verified,.succeeded,.ok{color:var(--ok)}
.failed,.bad{color:var(--bad)}
.running,.attention,.warn{color:var(--warn)}
.plot{border:1px solid var(--line);border-radius:8px;padding:1rem;min-width:0}
.plot svg{display:block;width:100%;height:auto}
.plot svg text{fill:var(--muted);font-size:12px;font-family:system-ui,sans-serif}
figcaption{font-size:.875rem;margin-top:.5rem}
.plots{display:grid;gap:1rem;align-items:start;grid-template-columns:repeat(auto-fit,minmax(min(20rem,100%),1fr))}
.plot h3{margin:0 0 .5rem}
.plot details{margin:.75rem 0 0;overflow-x:auto}
.plot td,.plot th{padding:.25rem .75rem .25rem 0}
@media (max-width:30rem){.plot{padding:.5rem}}
.key{display:inline-block;width:.75rem;height:.75rem;border-radius:2px;background:currentColor;margin:0 .375rem 0 0}
.key.accent{color:var(--accent)}
.steps{counter-reset:step}
.steps h3::before{counter-increment:step;content:counter(step) ". ";color:var(--accent)}
.proofs{list-style:none;padding:0;border-top:1px solid var(--line)}
.proofs li{display:grid;gap:.125rem .75rem;justify-items:start;align-items:baseline;margin:0;padding:.75rem 0;border-bottom:1px solid var(--line)}
.proofs span:not(.pill),.proofs time{color:var(--muted);font-size:.875rem}
@media (min-width:40rem){.proofs li{grid-template-columns:6.5rem 1fr max-content}.proofs time{grid-column:3;grid-row:1}.proofs span:not(.pill){grid-column:2/4}}
.docs{display:grid;gap:0 3rem}
.contents{font-size:.875rem}
.contents a{text-decoration:none}
.contents a:hover{text-decoration:underline}
.contents p{margin:1rem 0 .25rem;font-weight:600}
.contents ul{display:block;margin:0}
.docs section:first-child h2{margin-top:1rem}
.operation{border-top:1px solid var(--line);margin-top:2rem;padding-top:.5rem}
.operation h3{margin-top:1rem;font-size:1.1875rem}
.method{font-weight:650;font-size:.875rem;color:var(--accent)}
.schema{list-style:none;padding:0}
.schema .schema{margin:.25rem 0 .5rem;padding-left:1rem;border-left:2px solid var(--line)}
.schema li{margin:.375rem 0}
.name{font-weight:650}
.type{color:var(--muted);font-size:.875rem;overflow-wrap:anywhere}
.answers{list-style:none;padding:0}
.answers details{margin:.375rem 0 .75rem}
@media (min-width:60rem){.docs{grid-template-columns:14rem minmax(0,1fr)}.contents{position:sticky;top:0;align-self:start;max-height:100vh;overflow-y:auto;padding:1rem 0}}
details{border:1px solid var(--line);border-radius:8px;margin:0 0 .75rem;padding:0 1rem}
summary{cursor:pointer;padding:.625rem 0;font-weight:600}
[hidden]{display:none!important}
h2:focus{outline:none}
label,legend{font-weight:600}
textarea,input[type=file],button{font:inherit;color:inherit;max-width:100%}
textarea{display:block;width:100%;margin:.375rem 0;padding:.625rem .75rem;background:var(--paper);border:1px solid var(--muted);border-radius:6px;font:.8125rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere;resize:vertical}
textarea[aria-invalid=true]{border-color:var(--bad)}
input[type=file]{display:block;width:100%;font-size:.875rem;color:var(--muted)}
input[type=radio]{margin:0 .5rem 0 0;accent-color:var(--accent)}
button,::file-selector-button{font:inherit;font-weight:600;padding:.5rem 1.25rem;border:1px solid var(--accent);border-radius:6px;background:var(--accent);color:var(--paper);cursor:pointer}
::file-selector-button{font-size:.875rem;padding:.25rem .75rem;margin-right:.75rem;background:var(--paper);color:var(--accent)}
button:hover{text-decoration:underline}
fieldset{border:1px solid var(--line);border-radius:8px;margin:0 0 1rem;padding:.5rem 1rem .75rem;min-width:0}
.drop,.own{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:1rem 1.125rem;margin:0 0 1rem}
.drop{border:1px dashed var(--muted)}
.drop.over{border-color:var(--accent);border-style:solid}
.drop>p{margin:.25rem 0}
.own>h2{margin-top:0}
.own>div>:last-child,.own>div>:last-child>:last-child{margin-bottom:0}
.long{grid-template-columns:13rem minmax(0,1fr)}
fieldset p{margin:.375rem 0}
fieldset .drop{margin:.75rem 0 .25rem}
fieldset label.choice{font-weight:400;display:flex;align-items:baseline}
${drawing}
`;

export const STYLE = SHEET.replaceAll('\n', '');
