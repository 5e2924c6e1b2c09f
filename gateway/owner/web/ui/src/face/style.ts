// The style sheet of the head. One unit (--u) is the smaller of 1/430 of the element's width and 1/387 of its height,
// so that the head fits any box.

const text = `
:host { display: block; aspect-ratio: 10 / 9; container-type: size; position: relative; color-scheme: light dark;
  --case: #f4f1ea; --case-side: #ddd8cd; --case-top: #fdfcf9; --case-under: #b8b2a5; --case-line: #cfc9bd;
  --screen: #0b0e13; --ink: #f7f9fc; --hue: transparent; }
:host([hidden]) { display: none; }
:host([look="screen"]), :host([look="bare"]) { aspect-ratio: 4 / 3; }
.stage { position: absolute; inset: 0; --u: min(100cqw / 430, 100cqh / 387); perspective: calc(1000 * var(--u)); perspective-origin: 50% 42%; }
.flat { --u: min(100cqw / 320, 100cqh / 240); }
.turn, .gesture { position: absolute; transform-style: preserve-3d; }
.turn { left: calc(50% - 172 * var(--u)); top: calc(50% - 172 * var(--u)); width: calc(344 * var(--u)); height: calc(264 * var(--u));
  transition: transform .55s cubic-bezier(.3,.1,.2,1); }
.gesture { inset: 0; }
.dragged .turn { transition-duration: .08s; }
.plane { position: absolute; background: var(--case-side); backface-visibility: hidden; }
.front, .back { inset: 0; border-radius: calc(30 * var(--u)); background: var(--case); }
.front { transform: translateZ(calc(70 * var(--u))); box-shadow: inset 0 0 0 calc(1.5 * var(--u)) var(--case-line); }
.back { transform: rotateY(180deg) translateZ(calc(70 * var(--u))); background: radial-gradient(circle, var(--case-under) 22%, var(--case) 22.5%); }
.left, .right { top: calc(27 * var(--u)); bottom: calc(27 * var(--u)); width: calc(140 * var(--u)); left: calc(102 * var(--u)); }
.left { transform: rotateY(-90deg) translateZ(calc(171.5 * var(--u))); }
.right { transform: rotateY(90deg) translateZ(calc(171.5 * var(--u))); }
.top, .bottom { left: calc(27 * var(--u)); right: calc(27 * var(--u)); height: calc(140 * var(--u)); top: calc(62 * var(--u)); }
.top { transform: rotateX(90deg) translateZ(calc(131.5 * var(--u))); background: var(--case-top); }
.bottom { transform: rotateX(-90deg) translateZ(calc(131.5 * var(--u))); background: var(--case-under); }
.corner { left: calc(152 * var(--u)); top: calc(64 * var(--u)); width: calc(40 * var(--u)); height: calc(136 * var(--u)); }
.c0 { transform: translate(calc(-157.5 * var(--u)), calc(-117.5 * var(--u))) rotateZ(-45deg) rotateX(90deg); background: var(--case-top); }
.c1 { transform: translate(calc(157.5 * var(--u)), calc(-117.5 * var(--u))) rotateZ(45deg) rotateX(90deg); background: var(--case-top); }
.c2 { transform: translate(calc(157.5 * var(--u)), calc(117.5 * var(--u))) rotateZ(135deg) rotateX(90deg); background: var(--case-under); }
.c3 { transform: translate(calc(-157.5 * var(--u)), calc(117.5 * var(--u))) rotateZ(-135deg) rotateX(90deg); background: var(--case-under); }
.screen { position: absolute; inset: calc(14 * var(--u)) calc(14 * var(--u)) calc(16 * var(--u)); border-radius: calc(18 * var(--u));
  background: var(--screen); color: var(--ink); overflow: hidden; transition: box-shadow .4s; filter: brightness(var(--brightness, 1));
  box-shadow: inset 0 0 0 calc(3 * var(--u)) var(--hue), 0 0 calc(16 * var(--u)) calc(-2 * var(--u)) var(--hue); }
.flat .screen { inset: 0; margin: auto; width: calc(320 * var(--u)); height: calc(240 * var(--u)); }
.bare .screen { background: none; box-shadow: none; border-radius: 0; overflow: visible; }
svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible; }
.breath { position: absolute; inset: 0; animation: breath 6.6s ease-in-out infinite; }
.base { position: absolute; left: calc(50% - 108 * var(--u)); top: calc(50% + 88 * var(--u)); width: calc(216 * var(--u)); height: calc(64 * var(--u));
  border-radius: calc(14 * var(--u)) calc(14 * var(--u)) calc(24 * var(--u)) calc(24 * var(--u));
  background: linear-gradient(var(--case-under), var(--case-side) 38%, var(--case));
  box-shadow: 0 calc(10 * var(--u)) calc(16 * var(--u)) calc(-8 * var(--u)) rgb(0 0 0 / .35); }
.leds { position: absolute; left: calc(18 * var(--u)); right: calc(18 * var(--u)); bottom: calc(17 * var(--u)); display: flex; justify-content: space-between; }
.led { width: calc(9 * var(--u)); height: calc(9 * var(--u)); border-radius: 50%; background: var(--c, #a9a397);
  box-shadow: 0 0 calc(9 * var(--u)) var(--c, transparent); transition: background .2s; }
.led:nth-child(6) { margin-right: calc(16 * var(--u)); }
.bubble { position: absolute; left: 4%; right: 4%; bottom: 4%; padding: .35em .7em; border-radius: .9em; background: var(--ink); color: var(--screen);
  font: 500 calc(15.5 * var(--u)) / 1.25 system-ui, sans-serif; text-align: center; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2;
  overflow: hidden; overflow-wrap: anywhere; max-height: 2.5em; animation: appear .2s; }
.bubble:empty { display: none; }
.talks .screen-ink { transform: translateY(-9%) scale(.92); }
.screen-ink { transition: transform .25s; }
.flat .screen-ink { rotate: var(--tilt, 0deg); }
.ink, .fill { fill: currentColor; }
.line { fill: none; stroke: currentColor; stroke-width: 8; stroke-linecap: round; stroke-linejoin: round; }
.line.ink { fill: currentColor; stroke-width: 7; }
.brow { stroke-width: 6; }
.thin { fill: none; stroke: currentColor; stroke-width: 4; stroke-linecap: round; stroke-linejoin: round; }
.rose { fill: #ff7d93; } .soft { opacity: .55; } .heart, .tongue { fill: #ff6b86; } .water { fill: #7cc7ff; } .hot { stroke: #ff6a5c; }
.glass { fill: #2a3442; stroke: currentColor; stroke-width: 5; } .glass-line { stroke-width: 5; } .shine { stroke: #9fb4cc; stroke-width: 5; stroke-linecap: round; }
.sign { visibility: hidden; color: var(--hue); fill: var(--hue); opacity: .95; }
.bar, .dot { transform-box: fill-box; transform-origin: center; }
.muted { color: #ff9b8f; }
.is-muted .muted { visibility: visible; }
.listening { --hue: #41d18b; } .thinking { --hue: #b79bff; } .working { --hue: #ffb454; } .juggling { --hue: #ffb454; } .speaking { --hue: #5ab0ff; }
.error { --hue: #ff6a5c; } .attention { --hue: #41d18b; } .notification { --hue: #ffd34d; } .sleeping { --hue: #4a5878; }
.listening .of-listening, .thinking .of-thinking, .working .of-working, .juggling .of-juggling, .speaking .of-speaking, .error .of-error,
.attention .of-attention, .notification .of-notification { visibility: visible; }
.spin { transform-origin: 0 0; animation: spin 4s linear infinite; }
.juggling .spin { animation-duration: 1.6s; }
.bar { animation: bar 1s ease-in-out infinite alternate; } .dot { animation: dot 1.5s ease-in-out infinite; }
.b1 { animation-delay: -.35s; } .b2 { animation-delay: -.7s; } .dot.b1 { animation-delay: .25s; } .dot.b2 { animation-delay: .5s; }
.float { animation: dot 2.4s ease-in-out infinite; }
.sign .spin, .sign .bar, .sign .dot, .mark .float { animation-play-state: paused; }
.awake.working .of-working .spin, .awake.juggling .of-juggling .spin, .awake.listening .bar, .awake.thinking .dot,
.awake .mark[visibility=visible] .float { animation-play-state: running; }
.stage:not(.awake) .breath { animation: none; }
@keyframes breath { 50% { transform: translateY(1.2%); } }
@keyframes spin { to { transform: rotate(360deg); } }
@keyframes bar { from { transform: scaleY(.35); } }
@keyframes dot { 0%, 60%, 100% { opacity: 1; } 30% { opacity: .3; } }
@keyframes appear { from { opacity: 0; } }
@media (prefers-reduced-motion: reduce) {
  .breath, .spin, .bar, .dot, .float, .bubble { animation: none; }
  .turn, .screen, .screen-ink { transition: none; }
}
@media (forced-colors: active) { .screen, .plane, .base, .led { forced-color-adjust: none; } }
`;

let sheet: CSSStyleSheet | undefined;

// style returns the style sheet, which all heads of a page share.
export function style(): CSSStyleSheet {
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
  }
  return sheet;
}
