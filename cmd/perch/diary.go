package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"perch/agent/diary"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/command"
	"perch/plain"
)

// diaryPath is the path of the diary in the admin API.
const diaryPath = "/api/v1/diary"

func diaryListCommand() *cobra.Command {
	r, number := &target{}, 20
	c := r.register(&cobra.Command{
		Use:   "list",
		Short: "List what characters did (spoke, remembered, signed), newest first",
		RunE: func(c *cobra.Command, _ []string) error {
			if number < 1 || number > 1000 {
				return command.Usagef("-n is a number from 1 to 1000")
			}
			var list []diary.Entry
			return r.callAndPrint(c, http.MethodGet, fmt.Sprintf("%s?n=%d", diaryPath, number), nil, &list, func(out io.Writer) {
				if len(list) == 0 {
					fmt.Fprintln(out, "the diary is empty")
				}
				for _, e := range list {
					fmt.Fprintf(out, "%d  %s  %s  %s  %s\n", e.Seq, e.At.Local().Format(time.DateTime), plain.Text(e.Character),
						plain.Text(string(e.Type)), plain.Text(string(e.Payload)))
				}
			})
		},
	})
	c.Flags().IntVarP(&number, "number", "n", number, "the number of entries")
	return c
}

func diaryVerifyCommand() *cobra.Command {
	r, keys := &target{}, []string{}
	c := r.register(&cobra.Command{
		Use:   "verify",
		Short: "Check that no entry of the diary was changed, removed or moved, and that the newest is signed",
		Long: `If no appliance runs, the command reads the data directory (--data DIR). Its exit code is 1 if the diary is broken. Write down
the number and hash that it prints: if a later diary lacks that entry, it is an older copy, or its older entries were removed.`,
		RunE: func(c *cobra.Command, _ []string) error {
			report, err := r.verifyDiary(c)
			if err == nil {
				err = r.print(c, report, func(out io.Writer) { writeReport(out, report) })
			}
			switch {
			case err != nil || report.Fits(keys...):
				return err
			case len(report.Faults) == 0:
				return errors.New("the diary is consistent, but contains entries of another appliance")
			}
			return errors.New("the diary is broken")
		},
	})
	c.Flags().StringArrayVar(&keys, "key", nil, "`KEY` of another appliance whose backup you have restored here: accept its entries")
	return c
}

// verifyDiary returns the running appliance's report on the diary. If no appliance runs, it checks the
// diary in the data directory itself.
func (r *target) verifyDiary(c *cobra.Command) (report diary.Report, err error) {
	a, running, err := r.running(c.Context())
	switch {
	case err != nil:
		return report, err
	case running:
		return report, a.call(c.Context(), http.MethodGet, diaryPath+"/verify", nil, &report)
	}
	return datadir.CheckDiary(config.Data(r.data))
}

func writeReport(out io.Writer, r diary.Report) {
	for _, f := range r.Faults {
		fmt.Fprintln(out, plain.Text(f.What))
	}
	if r.Further > 0 {
		fmt.Fprintf(out, "and %d further faults\n", r.Further)
	}
	from := max(r.From, 1)
	for _, f := range r.Foreign {
		entries := fmt.Sprintf("entries %d to %d are consistent, but", from, f.To)
		if f.To < from {
			entries = "the diary began without entries, and was"
		}
		fmt.Fprintf(out, "%s signed with another appliance's key, %s. This is normal after a restore of its backup. "+
			"If you have restored one, compare the key with the one that perch diary verify showed there, and run perch diary verify --key KEY. "+
			"If you have not, somebody has put another diary here.\n", entries, plain.Text(f.Address))
		from = max(from, f.To+1)
	}
	switch {
	case len(r.Faults) > 0:
	case len(r.Foreign) > 0:
		fmt.Fprintf(out, "nothing in it was changed: %d entries, %d to %d\n", r.Entries, r.From, r.To)
	case r.Entries == 0:
		fmt.Fprintln(out, "the diary is whole and has no entries")
	default:
		fmt.Fprintf(out, "the diary is whole: %d entries, %d to %d\n", r.Entries, r.From, r.To)
	}
	if r.Hash != "" {
		fmt.Fprintf(out, "newest: %d %s\n", r.To, plain.Text(r.Hash))
	}
	fmt.Fprintf(out, "key: %s\n", plain.Text(r.Address))
}
