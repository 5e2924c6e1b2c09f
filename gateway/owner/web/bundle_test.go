package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"

	"perch/language"
	"perch/must"
)

// Maximum compressed sizes, in bytes, of the files that a browser loads with one language. The plots, the
// sound codec and the robot of the page are not counted, because they are loaded only when they are needed.
const (
	mostFirst = 60_000    // for the first view of the dashboard
	mostAll   = 180 << 10 // for all views
)

// TestBundleIsSmall checks the sizes of the files that a browser loads.
func TestBundleIsSmall(t *testing.T) {
	b, err := openBundle()
	must.Succeed(t, err)
	if len(b.entries) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("the page is not bundled")
		}
		t.Skip("the page is not bundled: make build bundles it")
	}
	text, err := dist.ReadFile("dist/files.json")
	must.Succeed(t, err)
	var made struct{ Outputs map[string]output }
	must.Succeed(t, json.Unmarshal(text, &made))
	size := func(from string, follow func(kind, of string) bool) (bytes int) {
		seen := map[string]bool{}
		var walk func(name string)
		walk = func(name string) {
			if seen[name] {
				return
			}
			seen[name] = true
			_, size, err := b.files[path.Base(name)].open()
			must.Succeed(t, err)
			bytes += int(size)
			for _, i := range made.Outputs[name].Imports {
				if !i.External && (i.Kind == "import-statement" || follow(i.Kind, made.Outputs[i.Path].EntryPoint)) {
					walk(i.Path)
				}
			}
		}
		for name, o := range made.Outputs {
			if o.EntryPoint == from {
				walk(name)
			}
		}
		return bytes
	}
	for _, tag := range language.All() {
		words := "/" + string(tag) + "/home.json"
		home := func(_, of string) bool { return strings.HasSuffix(of, "/home.ts") }
		without := size("src/app.ts", home)
		first := size("src/app.ts", func(kind, of string) bool { return home(kind, of) || strings.HasSuffix(of, words) })
		all := size("src/app.ts", func(_, of string) bool {
			others := strings.Contains(of, "/language/") && !strings.Contains(of, "/language/"+string(tag)+"/")
			return !others && !strings.Contains(of, "plot") && !strings.Contains(of, "opus") && !strings.Contains(of, "robot/page")
		})
		if without < 10_000 || first < without+1_500 || first > mostFirst || all < first || all > mostAll {
			t.Errorf("%s: the first view takes %d bytes without its words, and %d with them, at most %d; all views %d, at most %d",
				tag, without, first, mostFirst, all, mostAll)
		}
		t.Logf("%s: the first view takes %d bytes, all views %d", tag, first, all)
	}
}

// TestFirstViewIsPreloaded checks that the HTML of the dashboard names the scripts that the first view needs, and that
// the bundle has them.
func TestFirstViewIsPreloaded(t *testing.T) {
	b := mustBundle()
	if len(b.entries) == 0 {
		t.Skip("the page is not bundled: make build bundles it")
	}
	d := &Server{bundle: sync.OnceValue(mustBundle)}
	page := d.render(pageAt("/"), "/")
	home := false
	for _, name := range b.imports["app"] {
		home = home || strings.HasPrefix(name, "home-")
		if _, known := b.files[name]; !known || !strings.Contains(page, `<link rel="modulepreload" href="assets/`+name+`">`) {
			t.Errorf("%s is not preloaded, or not in the bundle (%t)", name, known)
		}
	}
	if !home || len(b.imports["app"]) > 12 {
		t.Errorf("the first view needs %v", b.imports["app"])
	}
}

// TestFilesAreSentWithoutCopy checks that a response with the largest file allocates less than half of the file's
// size, because any number of slow clients may request the files.
func TestFilesAreSentWithoutCopy(t *testing.T) {
	largest, most := "", int64(0)
	for name, f := range mustBundle().files {
		if _, size, err := f.open(); err != nil {
			t.Error(err)
		} else if size > most {
			largest, most = name, size
		}
	}
	if most == 0 {
		t.Skip("the page is not bundled: make build bundles it")
	}
	d := &Server{bundle: sync.OnceValue(mustBundle)}
	d.bundle()
	const times = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		c, _ := gin.CreateTestContext(&nobody{header: http.Header{}})
		c.Request = httptest.NewRequest(http.MethodGet, "/assets/"+largest, nil)
		c.Request.Header.Set("Accept-Encoding", "gzip")
		d.serveFile(c, largest)
		if n := int64(c.Writer.Size()); n != most {
			t.Fatalf("%d bytes of %d are sent", n, most)
		}
	}
	runtime.ReadMemStats(&after)
	if each := int64(after.TotalAlloc-before.TotalAlloc) / times; each > most/2 {
		t.Errorf("to send %d bytes takes %d", most, each)
	}
}

// nobody is an http.ResponseWriter that discards the response.
type nobody struct{ header http.Header }

func (n *nobody) Header() http.Header         { return n.header }
func (n *nobody) Write(p []byte) (int, error) { return len(p), nil }
func (n *nobody) WriteHeader(int)             {}
