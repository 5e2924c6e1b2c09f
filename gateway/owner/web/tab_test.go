package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"perch/must"
)

// patience is how long a test waits for a page, even on a busy machine.
const patience = time.Minute

// tab is a tab of a browser. The test fails if a condition is not met within patience, or if the page writes an error to
// the console.
type tab struct {
	chromium *chromium
	t        testing.TB
	ctx      context.Context
	files    string // folder for downloads
	width    int64
	scheme   string          // "light" or "dark"
	looked   map[string]bool // widths and schemes in which axe has looked at the whole page

	dialogs sync.WaitGroup
	mu      sync.Mutex
	faults  []string
	allowed []string
}

// hear records errors of the page. It is called by the goroutine that reads the browser's events, so it must not block.
func (b *tab) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			text := "console." + string(e.Type)
			for _, a := range e.Args {
				text += " " + string(a.Value) + a.Description
			}
			b.note(text)
		}
	case *runtime.EventExceptionThrown:
		text := "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.note(text)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			b.note(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *page.EventJavascriptDialogOpening:
		b.note("dialog: " + e.Message)
		b.dialogs.Go(func() { // the page is blocked until the dialog is closed
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		})
	}
}

func (b *tab) note(fault string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fault)
}

// allow makes judge ignore errors that contain one of the texts, such as those of refused requests.
func (b *tab) allow(texts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, texts...)
}

// judge fails the test for each recorded error that is not allowed.
func (b *tab) judge() {
	b.t.Helper()
	broken, err := evaluate[[]string](b, "globalThis.see?.broken ?? []")
	if err != nil {
		b.t.Errorf("ask the page what it has done wrong: %v", err)
	}
	b.mu.Lock()
	faults, allowed := append(b.faults, broken...), b.allowed
	b.mu.Unlock()
	for _, f := range faults {
		if !slices.ContainsFunc(allowed, func(text string) bool { return strings.Contains(f, text) }) {
			b.t.Errorf("the page's console: %s", f)
		}
	}
	if b.t.Failed() {
		if text, err := evaluate[string](b, "location.href + ' shows: ' + see.text(document.body)"); err == nil {
			b.t.Logf("%.3000s", text)
		}
		if to := os.Getenv("PERCH_FAILED_SCREENSHOTS"); to != "" {
			b.picture(filepath.Join(to, strings.ReplaceAll(b.t.Name(), "/", "-")+".png"))
		}
	}
}

// call sends a command of the DevTools protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	result, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.t.Fatalf("%s: %v", command.Method, err)
	}
	return result
}

// evaluate returns the value of a JavaScript expression in the page. It waits for promises.
func evaluate[T any](b *tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, patience+10*time.Second)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// value is like evaluate, but fails the test after an error.
func value[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := evaluate[T](b, expression)
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// at sets the size of the window.
func (b *tab) at(width, height int64) {
	b.t.Helper()
	b.width = width
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1})
}

// inLight sets the colour scheme, "light" or "dark", and reduces motion.
func (b *tab) inLight(scheme string) {
	b.t.Helper()
	b.scheme = scheme
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-reduced-motion", Value: "reduce"}, {Name: "prefers-color-scheme", Value: scheme}}})
}

// open opens an address.
func (b *tab) open(url string) {
	b.t.Helper()
	b.looked = map[string]bool{}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		b.t.Fatalf("open %s: %v", url, err)
	}
}

// view opens a view of the dashboard, which must be open, and waits until the view has loaded its data.
func (b *tab) view(hash, element string) {
	b.t.Helper()
	value[bool](b, "(location.hash = "+quote("#/"+hash)+", true)")
	b.until("see.has(" + quote("main > "+element) + ") && !see.has('main >>> .loading')")
}

// until waits until a JavaScript condition is true. It continues if another page is loaded meanwhile.
func (b *tab) until(condition string) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	var err error
	for time.Now().Before(deadline) {
		var held bool
		held, err = evaluate[bool](b, fmt.Sprintf(`(async () => {
			for (const end = Date.now() + %d; Date.now() < end; await new Promise((r) => setTimeout(r, 25))) if (%s) return true;
			return false;
		})()`, time.Until(deadline).Milliseconds(), condition))
		if held {
			return
		}
		if err != nil && !passes(err) {
			break
		}
	}
	b.t.Fatalf("not within %s: %s (%v)", patience, condition, err)
}

// passes reports whether an error is caused by a page that is being replaced by another one.
func passes(err error) bool {
	return slices.ContainsFunc([]string{"navigated", "Cannot find context", "context was destroyed", "see is not defined"},
		func(s string) bool { return strings.Contains(err.Error(), s) })
}

// says waits until an element contains a text.
func (b *tab) says(selector, text string) {
	b.t.Helper()
	b.until("see.says(" + quote(selector) + ", " + quote(text) + ")")
}

// sees waits until there is an element for the selector.
func (b *tab) sees(selector string) {
	b.t.Helper()
	b.until("see.has(" + quote(selector) + ")")
}

// lacks waits until there is no element for the selector.
func (b *tab) lacks(selector string) {
	b.t.Helper()
	b.until("!see.has(" + quote(selector) + ")")
}

// text returns the text of an element.
func (b *tab) text(selector string) string {
	b.t.Helper()
	b.sees(selector)
	return value[string](b, "see.text(see.one("+quote(selector)+"))")
}

// click clicks an element with the left button of the mouse as soon as the element can be clicked. If the element has
// moved away before the click, click tries again.
func (b *tab) click(selector string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; {
		x, y := b.place(selector)
		value[bool](b, "see.aim("+quote(selector)+")")
		if err := chromedp.Do(b.ctx, chromedp.MouseClickXY(x, y)); err != nil {
			b.t.Fatalf("click %s: %v", selector, err)
		}
		missed, err := evaluate[bool](b, "see.missed")
		switch {
		case err != nil && !passes(err):
			b.t.Fatalf("click %s: %v", selector, err)
		case !missed: // or the page is left, since it was clicked
			return
		case time.Now().After(end):
			b.t.Fatalf("%s moves away from each click", selector)
		}
	}
}

// drag drags the middle of an element to the right and down, in CSS pixels.
func (b *tab) drag(selector string, right, down float64) {
	b.t.Helper()
	x, y := b.place(selector)
	if err := chromedp.Do(b.ctx, chromedp.DragAndDropXY(x, y, x+right, y+down)); err != nil {
		b.t.Fatalf("drag %s: %v", selector, err)
	}
}

func (b *tab) place(selector string) (x, y float64) {
	b.t.Helper()
	var at struct {
		X, Y float64
		Why  string
	}
	for end := time.Now().Add(patience); ; {
		// The place is measured twice, so that the element does not move any more.
		at.Why = ""
		found, err := evaluate[json.RawMessage](b, `(async () => {
			const first = see.at(`+quote(selector)+`);
			await new Promise((r) => setTimeout(r, 30));
			const at = see.at(`+quote(selector)+`);
			return at.why || (first.x === at.x && first.y === at.y) ? at : { why: "it moves" };
		})()`)
		if err == nil {
			err = json.Unmarshal(found, &at)
		}
		switch {
		case err == nil && at.Why == "":
			return at.X, at.Y
		case err != nil && !passes(err), time.Now().After(end):
			b.t.Fatalf("%s cannot be clicked: %s %v", selector, at.Why, err)
		}
	}
}

// fill replaces the text of a field by typing.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.click(selector)
	value[bool](b, "(see.one("+quote(selector)+").select(), true)")
	b.types(text)
}

// types types a text at the cursor.
func (b *tab) types(text string) {
	b.t.Helper()
	call(b, input.InsertText, input.InsertTextParams{Text: text})
}

// press presses keys, such as kb.Enter.
func (b *tab) press(keys string, options ...chromedp.KeyOption) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, chromedp.KeyEvent(keys, options...)); err != nil {
		b.t.Fatalf("press %q: %v", keys, err)
	}
}

// choose sets a select or a slider by script, because the browser draws their lists and thumbs outside of the page.
func (b *tab) choose(selector, to string) {
	b.t.Helper()
	b.sees(selector)
	value[bool](b, "see.set("+quote(selector)+", "+quote(to)+")")
}

// give chooses a file in a file field.
func (b *tab) give(selector, file string) {
	b.t.Helper()
	b.sees(selector)
	field := value[*runtime.RemoteObject](b, "see.one("+quote(selector)+")")
	call(b, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: []string{file}, ObjectID: field.ObjectID})
}

// download waits for a downloaded file whose name matches a pattern, and returns its content.
func (b *tab) download(pattern string) []byte {
	b.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); b.frame() {
		names, err := filepath.Glob(filepath.Join(b.files, pattern))
		must.Succeed(b.t, err)
		if len(names) > 0 {
			text, err := os.ReadFile(names[0])
			must.Succeed(b.t, err)
			return text
		}
	}
	b.t.Fatalf("nothing has been saved as %s", pattern)
	return nil
}

// frame waits for 30 ms by the page's clock.
func (b *tab) frame() {
	b.t.Helper()
	value[bool](b, "new Promise((r) => setTimeout(() => r(true), 30))")
}

// picture saves a screenshot to a file, as JPEG if the name ends with .jpg, and otherwise as PNG.
func (b *tab) picture(to string) {
	b.t.Helper()
	params := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng}
	if filepath.Ext(to) == ".jpg" {
		params.Format, params.Quality = page.CaptureScreenshotFormatJpeg, new(int64(82))
	}
	shot := call(b, page.CaptureScreenshot, params)
	must.Succeed(b.t, os.WriteFile(to, shot.Data, 0o644))
}

// axe fails the test for each violation of WCAG 2.2 AA that axe-core finds. For each width and colour scheme, the frame
// around the views of the dashboard is checked only the first time.
func (b *tab) axe(what string) {
	b.t.Helper()
	if !value[bool](b, "!!globalThis.axe") {
		value[bool](b, b.chromium.axe+";true")
	}
	at := fmt.Sprint(b.width, b.scheme)
	found := value[json.RawMessage](b, fmt.Sprintf(`(async () => {
		const view = %t && document.querySelector("p-shell")?.shadowRoot?.querySelector("main");
		const run = (selectors) => axe.run(view ? { include: [{ fromShadowDom: ["p-shell", "main"] }] } : document, {
			runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], rules: { "target-size": { enabled: true } }, preload: false,
			resultTypes: ["violations"], elementRef: false, selectors });
		// To name the elements takes half of the time, and is for what is wrong.
		if ((await run(false)).violations.length === 0) return [];
		return (await run(true)).violations.map((v) => ({ id: v.id, help: v.help, nodes: v.nodes.map((n) =>
			n.target.flat().join(" ") + "  " + n.html.slice(0, 200) + "  " + (n.failureSummary ?? "").replace(/\s+/g, " ")) }));
	})()`, b.looked[at]))
	b.looked[at] = true
	var all []struct {
		ID, Help string
		Nodes    []string
	}
	must.Succeed(b.t, json.Unmarshal(found, &all))
	for _, v := range all {
		b.t.Errorf("%s: axe %s: %s\n  %s", what, v.ID, v.Help, strings.Join(v.Nodes[:min(len(v.Nodes), 4)], "\n  "))
	}
}

// fits fails the test if an element reaches beyond the right edge of the window.
func (b *tab) fits(what string) {
	b.t.Helper()
	if wide := value[[]string](b, "see.wide()"); len(wide) > 0 {
		b.t.Errorf("%s has to be scrolled sideways for %q", what, wide)
	}
}

// inspect checks the page with axe and fits, in a wide and in a narrow window.
func (b *tab) inspect(what string) {
	b.t.Helper()
	for _, width := range []int64{1400, 360} {
		b.at(width, 800)
		b.lacks("main >>> [data-test=failed]")
		b.axe(what)
		b.fits(what)
	}
}

// quote returns a text as a JavaScript string literal.
func quote(text string) string {
	q, _ := json.Marshal(text) // never fails for a string
	return string(q)
}
