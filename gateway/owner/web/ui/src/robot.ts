// The page /robot: a robot in the browser.

import { dress } from "./lib/theme.js";
import "./robot/page.js";

dress();
document.body.append(document.createElement("p-web-robot"));
