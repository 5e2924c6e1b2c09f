package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"perch/child"
	"perch/command"
	"perch/gateway/owner/web"
)

func openCommand() *cobra.Command {
	r := &target{}
	return r.register(&cobra.Command{
		Use:   "open",
		Short: "Print a link that logs a browser in to the page once, and open it",
		Long: `The link works in a browser on any device of this network, without the admin token. It works once, within ten minutes. In a
terminal the command also draws it as a QR code for a phone. Where neither is at hand, open the page and type the six digits,
within five minutes. If this machine has a screen, the command opens the link there.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var l web.Link
			return r.callAndPrint(c, http.MethodPost, "/api/v1/link", nil, &l, func(out io.Writer) {
				f, isFile := command.File(c.OutOrStdout())
				terminal := isFile && isTerminal(f)
				fmt.Fprintln(out, strings.Join(l.URLs, "\n"))
				if terminal {
					fmt.Fprint(f, drawQR(l.QR))
				}
				fmt.Fprintf(out, "It works once, until %s.\n", l.Until.Local().Format("15:04"))
				if len(l.Code) == 6 {
					fmt.Fprintf(out, "Or type the code %s %s on the page, within five minutes.\n", l.Code[:3], l.Code[3:])
				}
				if last := len(l.URLs) - 1; terminal && hasScreen() && last >= 0 && isPage(l.URLs[last]) {
					browser := exec.CommandContext(c.Context(), "xdg-open", l.URLs[last])
					browser.Env = child.Environ(os.Environ())
					_ = browser.Run() // without a browser, the owner uses the printed link
				}
			})
		},
	})
}

// isPage reports whether an address is an http or https URL. For other addresses xdg-open might start any
// program on this machine.
func isPage(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// isTerminal reports whether a file is a terminal or another character device, such as /dev/null.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// hasScreen reports whether this machine can show a browser.
func hasScreen() bool { return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "" }

// quietZone is the margin of a QR code, in modules (the squares of the code). ISO/IEC 18004 requires four,
// but two are enough on a screen.
const quietZone = 2

// drawQR draws a QR code, whose rows consist of the digits 0 and 1 (dark). Each line of text shows two rows
// of the code. drawQR sets the colours black on white, because a terminal may show light text on a dark
// background.
func drawQR(rows []string) string {
	isDark := func(x, y int) bool {
		y, x = y-quietZone, x-quietZone
		return y >= 0 && y < len(rows) && x >= 0 && x < len(rows[y]) && rows[y][x] == '1'
	}
	var b strings.Builder
	for y := 0; y < len(rows)+2*quietZone; y += 2 {
		b.WriteString("\x1b[30;107m")
		for x := range len(rows) + 2*quietZone {
			switch upper, lower := isDark(x, y), isDark(x, y+1); {
			case upper && lower:
				b.WriteString("█")
			case upper:
				b.WriteString("▀")
			case lower:
				b.WriteString("▄")
			default:
				b.WriteString(" ")
			}
		}
		b.WriteString("\x1b[0m\n")
	}
	return b.String()
}
