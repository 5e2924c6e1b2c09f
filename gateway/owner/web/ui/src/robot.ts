// The page /robot: a robot in the browser.

import { dress } from "./lib/theme.js";
import { allWords } from "./lib/words.js";
import "./robot/inspector.js";
import "./robot/page.js";
import "./robot/panels.js";

dress();
await allWords();
document.body.append(document.createElement("p-web-robot"));
