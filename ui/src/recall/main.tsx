import { render } from "preact";
import "../styles/tokens.css";
import "../styles/base.css";
import "../styles/shared.css";
import "./view.css";
import { showHidden } from "../lib/text";
import { RecallView } from "./view";

showHidden();
render(<RecallView />, document.getElementById("app")!);
