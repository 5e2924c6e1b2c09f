// The page /robot: a robot for everybody who has none.

import { dress } from "./lib/theme.js";
import "./robot/page.js";

dress();
document.body.append(document.createElement("p-web-robot"));
