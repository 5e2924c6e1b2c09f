package main

import (
	"fmt"
	"math"
	"strings"
)

// series is a line of a panel.
type series struct {
	name   string
	points []point
}

type point struct{ x, y float64 }

// panel is a plot with one axis of values, from 0 on.
type panel struct {
	title  string
	series []series
}

// The sizes of a panel, and of the room around its plot.
const (
	panelWidth, panelHeight      = 380, 260
	left, right, top, underneath = 48, 16, 40, 44
)

// chart is an SVG of panels side by side, over the number of robots. It has a background of
// its own, so that it can be read whatever is around it.
func chart(panels []panel) string {
	var s strings.Builder
	width := panelWidth * len(panels)
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">
<style>
.ground { fill: #fff } text { fill: #222 } .grid { stroke: #ddd } .line { fill: none; stroke-width: 2 }
.s0 { stroke: #0b62c4; fill: #0b62c4 } .s1 { stroke: #b54708; fill: #b54708; stroke-dasharray: 6 4 } text.s0, text.s1 { stroke: none }
@media (prefers-color-scheme: dark) {
.ground { fill: #161b22 } text { fill: #e6edf3 } .grid { stroke: #3d444d }
.s0 { stroke: #6cb2ff; fill: #6cb2ff } .s1 { stroke: #ffb26b; fill: #ffb26b }
}
.line { fill: none }
</style>
<rect class="ground" width="%d" height="%d"/>
`, width, panelHeight, width, panelHeight)
	for i, p := range panels {
		fmt.Fprintf(&s, "<g transform=\"translate(%d 0)\">\n", i*panelWidth)
		p.draw(&s)
		s.WriteString("</g>\n")
	}
	s.WriteString("</svg>\n")
	return s.String()
}

func (p panel) draw(s *strings.Builder) {
	var xs []float64
	var mostX, mostY float64
	for _, line := range p.series {
		for _, at := range line.points {
			mostX, mostY = max(mostX, at.x), max(mostY, at.y)
		}
	}
	if len(p.series) > 0 {
		for _, at := range p.series[0].points {
			xs = append(xs, at.x)
		}
	}
	step := round(mostY / 4)
	ceiling := step * max(1, math.Ceil(mostY/step))
	const w, h = panelWidth - left - right, panelHeight - top - underneath
	x := func(v float64) float64 { return left + v/max(1, mostX)*w }
	y := func(v float64) float64 { return top + h - v/ceiling*h }

	fmt.Fprintf(s, "<text x=\"%d\" y=\"18\" font-weight=\"bold\">%s</text>\n", left, p.title)
	for v := 0.0; v <= ceiling+step/2; v += step {
		fmt.Fprintf(s, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			left, y(v), panelWidth-right, left-6, y(v)+4, text(v, ""))
	}
	for i, v := range xs {
		if i > 0 && x(v)-x(xs[i-1]) < 20 {
			continue // its number would be on the other
		}
		fmt.Fprintf(s, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x(v), top+h+18, text(v, ""))
	}
	fmt.Fprintf(s, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">robots that talk at once</text>\n", left+w/2, panelHeight-8)
	for i, line := range p.series {
		var d strings.Builder
		for n, at := range line.points {
			fmt.Fprintf(&d, "%c%.1f %.1f", "ML"[min(n, 1)], x(at.x), y(at.y))
		}
		fmt.Fprintf(s, "<path class=\"line s%d\" d=\"%s\"/>\n", i, &d)
		for _, at := range line.points {
			fmt.Fprintf(s, "<circle class=\"s%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>%s robots: %s</title></circle>\n",
				i, x(at.x), y(at.y), text(at.x, ""), text(at.y, ""))
		}
		if line.name != "" {
			fmt.Fprintf(s, "<text class=\"s%d\" x=\"%d\" y=\"%d\">%s</text>\n", i, left+8, top+14+16*i, line.name)
		}
	}
}

// round is the next 1, 2 or 5 times a power of ten.
func round(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 5} {
		if v <= n*power {
			return n * power
		}
	}
	return 10 * power
}
