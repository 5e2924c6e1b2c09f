package perch_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// captions say in a few words what the boxes of the drawing own. A box without
// a caption shows its name alone.
var captions = map[string]string{
	"child":          "the environment of programs that are started",
	"cmd":            "the program",
	"firmware-tools": "the tools",
	"gateway/*":      "doors",
	"agent":          "turns, memory, visible state",
	"agent/*":        "brains and their parts",
	"voice":          "sound",
	"voice/*":        "recognizers, synthesizers",
	"perception":     "senses, behaviours",
	"ota":            "check-in, firmware",
	"ota/espimage":   "firmware images",
	"event":          "what happened; the bus",
	"device":         "what a robot is",
	"device/xiaozhi": "the robots' protocol",
	"remote":         "servers that are not ours",
	"socket":         "WebSockets",
	"store":          "the database",
}

// TestArchitectureDrawing holds docs/architecture.svg, which is drawn from
// arrows: PERCH_GOLDEN=rewrite go test . draws it.
func TestArchitectureDrawing(t *testing.T) {
	const file = "docs/architecture.svg"
	d := newDrawing(t)
	d.layOut()
	want := d.svg()
	if os.Getenv("PERCH_GOLDEN") == "rewrite" {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("docs/architecture.svg does not show the imports of house_test.go (%v); PERCH_GOLDEN=rewrite go test . draws it", err)
	}
}

// box is a group of packages, or a bend: the place in a row where a line passes.
type box struct {
	name    string
	members []string
	bend    bool
	row     int
	x, w, h float64 // x is the middle
	down    []*box  // what it may import, in lower rows; after layOut in the next row
	up      []*box
}

// drawing is the boxes by row, the lowest first.
type drawing struct {
	boxes map[string]*box
	rows  [][]*box
}

// boxOf is the box that a package is drawn in. Packages below a folder share one,
// except those that may import nothing and that other folders may import.
func boxOf(dir string, dirs []string) string {
	top, _, below := strings.Cut(dir, "/")
	allowed, _ := rules(dir)
	foreign := func(other string) bool {
		may, _ := rules(other)
		return !strings.HasPrefix(other, top+"/") && !strings.HasPrefix(other, "cmd/") && matches(may, dir)
	}
	switch {
	case top == "firmware-tools" || top == "cmd" || top == "remote" || !below:
		return top
	case len(allowed) == 0 && slices.ContainsFunc(dirs, foreign):
		return dir
	}
	return top + "/*"
}

func newDrawing(t *testing.T) *drawing {
	d := &drawing{boxes: map[string]*box{}}
	dirs := packages(t)
	for _, dir := range dirs {
		name := boxOf(dir, dirs)
		if d.boxes[name] == nil {
			d.boxes[name] = &box{name: name, row: -1}
		}
		d.boxes[name].members = append(d.boxes[name].members, dir)
	}
	may := map[*box]map[*box]bool{}
	for _, dir := range dirs {
		from := d.boxes[boxOf(dir, dirs)]
		if may[from] == nil {
			may[from] = map[*box]bool{}
		}
		allowed, _ := rules(dir)
		for _, other := range dirs {
			if to := d.boxes[boxOf(other, dirs)]; to != from && matches(allowed, other) {
				may[from][to] = true
			}
		}
	}
	var rowOf func(b *box, above []*box) int
	rowOf = func(b *box, above []*box) int {
		if slices.Contains(above, b) {
			t.Fatalf("%s may import itself through others", b.name)
		}
		if b.row < 0 {
			row := 0
			for to := range may[b] {
				row = max(row, 1+rowOf(to, append(above, b)))
			}
			b.row = row
		}
		return b.row
	}
	for _, name := range slices.Sorted(maps.Keys(d.boxes)) {
		b := d.boxes[name]
		rowOf(b, nil)
		for len(d.rows) <= b.row {
			d.rows = append(d.rows, nil)
		}
		d.rows[b.row] = append(d.rows[b.row], b)
		for _, to := range slices.SortedFunc(maps.Keys(may[b]), func(x, y *box) int { return cmp.Compare(x.name, y.name) }) {
			through := slices.ContainsFunc(slices.Collect(maps.Keys(may[b])), func(other *box) bool { return may[other][to] })
			if !through { // a line less: there is a longer way
				b.down = append(b.down, to)
			}
		}
	}
	return d
}

// packages are the folders with Go code that are not only tests.
func packages(t *testing.T) (dirs []string) {
	fakes := []string{"store/storetest", "store/archive/archivetest", "gateway/door/doortest", "gateway/avatar/avatartest"}
	for _, name := range goFiles(t, "") {
		dir := path.Dir(filepath.ToSlash(name))
		if dir != "." && !strings.HasSuffix(name, "_test.go") && !slices.Contains(fakes, dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) < 20 {
		t.Fatalf("only %d packages", len(dirs))
	}
	slices.Sort(dirs)
	return dirs
}

// Sizes, in pixels.
const (
	lineHeight = 17.0
	letter     = 7.3
	gapX       = 26.0
	gapY       = 64.0
	margin     = 16.0
)

// lines are the texts in a box below its name.
func (b *box) lines() (all []string) {
	if c := captions[b.name]; c != "" {
		all = append(all, c)
	}
	if len(b.members) == 1 && b.members[0] == b.name {
		return all
	}
	line := ""
	for _, m := range b.members {
		if m = strings.TrimPrefix(m, strings.TrimSuffix(b.name, "*")); m == b.name {
			continue
		}
		m = strings.TrimPrefix(m, "/")
		if line != "" && len(line)+len(m) > 34 {
			all, line = append(all, line), ""
		}
		line = strings.TrimPrefix(line+" · "+m, " · ")
	}
	return append(all, line)
}

// layOut places bends where lines cross a row, orders each row so that few
// lines cross, and moves boxes towards what they are joined to.
func (d *drawing) layOut() {
	for row := len(d.rows) - 1; row > 0; row-- {
		for _, b := range d.rows[row] {
			for i, to := range b.down {
				if to.row < row-1 {
					bend := &box{bend: true, row: row - 1, w: 2, down: []*box{to}}
					d.rows[row-1] = append(d.rows[row-1], bend)
					b.down[i] = bend
				}
			}
		}
	}
	for _, row := range d.rows {
		x := 0.0
		for _, b := range row {
			for _, to := range b.down {
				to.up = append(to.up, b)
			}
			if !b.bend {
				longest := len([]rune(b.name))
				for _, l := range b.lines() {
					longest = max(longest, len([]rune(l)))
				}
				b.w, b.h = float64(longest)*letter+24, float64(1+len(b.lines()))*lineHeight+14
			}
			b.x = x + b.w/2
			x += b.w + gapX
		}
	}
	for round := range 60 {
		for i := range d.rows {
			if round%2 == 1 {
				i = len(d.rows) - 1 - i
			}
			d.settle(d.rows[i], round < 30)
		}
	}
	fromLeft := func(a, b *box) int { return cmp.Compare(a.x, b.x) }
	for _, row := range d.rows {
		for _, b := range row {
			slices.SortStableFunc(b.down, fromLeft)
			slices.SortStableFunc(b.up, fromLeft)
		}
	}
}

// settle moves the boxes of a row to the middle of what they are joined to, and
// then apart.
func (d *drawing) settle(row []*box, reorder bool) {
	for _, b := range row {
		if joined := slices.Concat(b.up, b.down); len(joined) > 0 {
			sum := 0.0
			for _, other := range joined {
				sum += other.x
			}
			b.x = sum / float64(len(joined))
		}
	}
	if reorder {
		slices.SortStableFunc(row, func(a, b *box) int { return cmp.Compare(a.x, b.x) })
	}
	before := 0.0
	for _, b := range row {
		before += b.x
	}
	for i := 1; i < len(row); i++ {
		row[i].x = max(row[i].x, row[i-1].x+(row[i-1].w+row[i].w)/2+gapX)
	}
	after := 0.0
	for _, b := range row {
		after += b.x
	}
	for _, b := range row {
		b.x -= (after - before) / float64(len(row))
	}
}

const style = `<style>
  text { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #1f2328; text-anchor: middle }
  .name { font-weight: bold }
  .more { fill: #57606a }
  rect { fill: #f6f8fa; stroke: #8c959f }
  path { fill: none; stroke: #8c959f; stroke-width: 1.3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .more { fill: #9da7b3 }
    rect { fill: #161b22; stroke: #6e7681 }
    path { stroke: #6e7681 }
  }
</style>
`

func (d *drawing) svg() string {
	left, right, height := 0.0, 0.0, margin
	tops, heights := make([]float64, len(d.rows)), make([]float64, len(d.rows))
	for i := len(d.rows) - 1; i >= 0; i-- {
		for _, b := range d.rows[i] {
			left, right, heights[i] = min(left, b.x-b.w/2), max(right, b.x+b.w/2), max(heights[i], b.h)
		}
		tops[i] = height
		height += heights[i] + gapY
	}
	height += margin - gapY
	shift := margin - left
	var lines, boxes strings.Builder
	for i, row := range d.rows {
		for _, b := range row {
			x, top, bottom := b.x+shift, tops[i], tops[i]+b.h
			if b.bend {
				bottom = top + heights[i]
				fmt.Fprintf(&lines, "<path d=\"M%.0f %.0f V%.0f\"/>\n", x, top, bottom)
			} else {
				fmt.Fprintf(&boxes, "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" rx=\"6\"/>\n", x-b.w/2, top, b.w, b.h)
				for n, text := range append([]string{b.name}, b.lines()...) {
					class := "more"
					if n == 0 {
						class = "name"
					}
					fmt.Fprintf(&boxes, "<text class=\"%s\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", class, x, top+20+float64(n)*lineHeight, text)
				}
			}
			for n, to := range b.down {
				from, end := port(b, n, len(b.down))+shift, port(to, slices.Index(to.up, b), len(to.up))+shift
				under := tops[to.row]
				middle := (tops[i] + heights[i] + under) / 2
				fmt.Fprintf(&lines, "<path d=\"M%.0f %.0f C%.0f %.0f %.0f %.0f %.0f %.0f\"%s/>\n", from, bottom, from, middle, end, middle, end,
					under, arrowTo(to))
			}
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img">
<title>The packages of Perch. A package may import what its lines lead down to, at any distance.</title>
%s<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M1 1 L8 4 L1 7"/></marker></defs>
%s%s</svg>
`, right+shift+margin, height, style, lines.String(), boxes.String())
}

func arrowTo(to *box) string {
	if to.bend {
		return ""
	}
	return ` marker-end="url(#end)"`
}

// port is where the n-th of some lines meets a box.
func port(b *box, n, of int) float64 {
	if b.bend {
		return b.x
	}
	return b.x + b.w*0.8*(float64(n+1)/float64(of+1)-0.5)
}
