package web_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"perch/cmd/perch/appliancetest"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
)

// chromium is a browser that a group of tests shares, because its start takes a second.
type chromium struct {
	ctx context.Context
	see string // the script testdata/see.js, which defines the object see in each page
	axe string // the script of axe-core
}

// need skips a test, or fails it in CI, if here is false.
func need(t testing.TB, here bool, why string) {
	t.Helper()
	switch {
	case here:
	case os.Getenv("CI") == "true":
		t.Fatal(why)
	default:
		t.Skip(why)
	}
}

// startChromium runs a headless Chromium until the test ends.
func startChromium(t testing.TB, flags ...chromedp.ExecAllocatorOption) *chromium {
	t.Helper()
	if testing.Short() {
		t.Skip("the browser runs for minutes, in make test-all")
	}
	path, err := exec.LookPath("chromium")
	need(t, err == nil, "chromium is not installed: make deps installs it")
	made, err := os.ReadFile("dist/files.json")
	need(t, err == nil && bytes.Contains(made, []byte("app.ts")), "the page is not bundled: make build bundles it")
	axe, err := os.ReadFile("ui/node_modules/axe-core/axe.min.js")
	need(t, err == nil, "axe-core is not installed: make clean build installs it")
	see, err := os.ReadFile("testdata/see.js")
	must.Succeed(t, err)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("lang", "en"),
		chromedp.Flag("accept-lang", "en"), chromedp.Env("LANGUAGE=en", "TZ=UTC"))
	allocator, free := chromedp.NewExecAllocator(context.Background(), append(options, flags...)...)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("end %s: %v", path, err)
		}
		end()
		free()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return &chromium{ctx, string(see), string(axe)}
}

// browse opens a tab that shares no cookies with other tabs, until the test ends.
func (c *chromium) browse(t testing.TB) *tab {
	t.Helper()
	return c.open(t, chromedp.WithNewBrowserContext())
}

// beside opens another tab that shares the cookies of b.
func (b *tab) beside() *tab {
	b.t.Helper()
	return b.chromium.open(b.t, chromedp.WithExistingBrowserContext(chromedp.FromContext(b.ctx).BrowserContextID))
}

func (c *chromium) open(t testing.TB, in chromedp.ContextOption) *tab {
	t.Helper()
	b := &tab{chromium: c, t: t, files: t.TempDir()}
	ctx, end := chromedp.NewContext(c.ctx, in, chromedp.WithListener(b.hear))
	b.ctx = ctx
	t.Cleanup(func() {
		end()
		b.dialogs.Wait()
	})
	t.Cleanup(b.judge)
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: c.see})
	must.Value(chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior:         browser.SetDownloadBehaviorBehaviorAllow,
		BrowserContextID: chromedp.FromContext(ctx).BrowserContextID, DownloadPath: b.files}))(t)
	b.inLight("light")
	b.at(1400, 900)
	return b
}

// startAppliance runs an appliance that has adopted robots with the given MAC addresses.
func startAppliance(t *testing.T, robots ...string) *appliancetest.Appliance {
	t.Helper()
	c := appliancetest.Config()
	c.Skins.Key = appliancetest.Key
	h := appliancetest.Start(t, c, t.TempDir())
	for _, mac := range robots {
		h.Adopt(mac)
	}
	return h
}

// visit opens a path below the appliance's address for browsers of this machine, in a tab with a session.
func (c *chromium) visit(t testing.TB, h *appliancetest.Appliance, path string) *tab {
	t.Helper()
	b := c.comeIn(t, h)
	b.open(h.LocalURL() + path)
	return b
}

// comeIn opens a tab with a session at the appliance's address for browsers of this machine.
func (c *chromium) comeIn(t testing.TB, h *appliancetest.Appliance) *tab {
	t.Helper()
	b := c.browse(t)
	here := strings.TrimSuffix(h.LocalURL(), "/")
	answer, text := httpservertest.Ask(t, http.MethodPost, here+"/session", `{"token":"`+h.OwnerToken()+`"}`, "Origin", here)
	if answer.StatusCode != http.StatusNoContent {
		t.Fatalf("%d %s", answer.StatusCode, text)
	}
	cookie := answer.Cookies()[0]
	call(b, network.SetCookie, network.SetCookieParams{Name: cookie.Name, Value: cookie.Value, URL: here, HTTPOnly: new(true),
		SameSite: network.CookieSameSiteStrict})
	return b
}
