package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"perch/command"
	"perch/ota/espimage"
)

// imageFlags are the options of the command image.
type imageFlags struct {
	json bool
	chip string
	slot int64 // size in bytes of the partition for the image; 0 to accept any size
}

// imageCommand returns the command perch-tools firmware image.
func imageCommand() *cobra.Command {
	f := &imageFlags{}
	c := &cobra.Command{
		Use:     "image FILE.bin",
		Short:   "Show what a firmware image is, and whether a robot would run it",
		Example: "perch-tools firmware image stack-chan.bin --chip esp32s3",
		RunE:    func(c *cobra.Command, args []string) error { return f.image(c.OutOrStdout(), args[0]) },
	}
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	c.Flags().StringVar(&f.chip, "chip", "", "`CHIP` that the image must be built for, such as esp32s3")
	c.Flags().Int64Var(&f.slot, "slot", 0, "size in `BYTES` of the partition that the image must fit into")
	return c
}

// image describes an image on stdout. It returns an error if a robot would not run the image.
func (f *imageFlags) image(stdout io.Writer, file string) error {
	target := espimage.Target{Revision: -1, Slot: f.slot}
	target.Chip, _ = espimage.ParseChip(f.chip)
	if f.chip != "" && target.Chip == espimage.NoChip {
		return command.Usagef("%q is not a chip such as esp32s3", f.chip)
	}
	i, err := readImage(file)
	if _, refused := errors.AsType[*espimage.Refusal](err); err != nil && !refused {
		return err
	}
	if err == nil {
		err = i.Fits(target)
	}
	if f.json {
		return errors.Join(command.WriteJSON(stdout, newJSONImage(i, err)), err)
	}
	printImage(stdout, i)
	return err
}

// readImage reads an image. If the error is an espimage.Refusal, i holds the parts that could
// be read.
func readImage(name string) (i espimage.Image, err error) {
	err = withFile(name, func(file io.ReaderAt, size int64) (err error) {
		i, err = espimage.Read(file, size)
		return err
	})
	return i, err
}

// withFile opens a regular file, passes it to read, and closes it.
func withFile(name string, read func(file io.ReaderAt, size int64) error) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open the file: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("open the file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", name)
	}
	return read(file, info.Size())
}

// printImage describes an image as text.
func printImage(w io.Writer, i espimage.Image) {
	fmt.Fprintf(w, "kind      %s, %d bytes\n", i.Kind, i.Size)
	if i.Kind != espimage.Application {
		return
	}
	fmt.Fprintf(w, "project   %s %s, built %s %s with ESP-IDF %s\n", i.App.Project, i.App.Version, i.App.Date, i.App.Time, i.App.IDF)
	fmt.Fprintf(w, "chip      %s, revision %d.%d and later\n", i.Chip, i.MinRevision/100, i.MinRevision%100)
	fmt.Fprintf(w, "elf       %x\n", i.App.ELF)
	for n, s := range i.Segments {
		fmt.Fprintf(w, "segment %d %#08x, %d bytes at %#x\n", n, s.Address, s.Length, s.Offset)
	}
	if i.Length == 0 {
		return // the image could not be read to its end
	}
	fmt.Fprintf(w, "sha256    %x\n", i.SHA256)
	switch {
	case i.Signed:
		fmt.Fprintln(w, "signature present (secure boot), not checked")
	case i.Trailing > 0:
		fmt.Fprintf(w, "trailing  %d unused bytes after the image\n", i.Trailing)
	}
	if !i.Hashed {
		fmt.Fprintln(w, "the image has no SHA-256 at its end: only a one-byte checksum protects it")
	}
}

// jsonImage is the JSON output about an image.
type jsonImage struct {
	Kind    espimage.Kind      `json:"kind"`
	Valid   bool               `json:"valid"`
	Code    string             `json:"code,omitempty"` // reason why the image is not valid, as a code word
	Why     string             `json:"why,omitempty"`  // the reason as a sentence
	Size    int64              `json:"size"`
	Length  int64              `json:"length,omitempty"` // bytes that a boot loader reads
	SHA256  string             `json:"sha256,omitempty"`
	Chip    string             `json:"chip,omitempty"`
	Project string             `json:"project,omitempty"`
	Version string             `json:"version,omitempty"`
	Built   string             `json:"built,omitempty"`
	IDF     string             `json:"idf,omitempty"`
	ELF     string             `json:"elf_sha256,omitempty"`
	Signed  bool               `json:"signed"`
	Hashed  bool               `json:"hashed"`
	Parts   []espimage.Segment `json:"segments,omitempty"`
}

// newJSONImage returns the JSON output about an image. err is the reason why the image is not
// valid, or nil.
func newJSONImage(i espimage.Image, err error) jsonImage {
	s := jsonImage{Kind: i.Kind, Valid: err == nil, Size: i.Size, Length: i.Length, Signed: i.Signed, Hashed: i.Hashed, Parts: i.Segments}
	if refusal, ok := errors.AsType[*espimage.Refusal](err); ok {
		s.Code, s.Why = refusal.Word, refusal.Sentence
	}
	if i.Kind == espimage.Application {
		s.Chip, s.Project, s.Version, s.IDF = i.Chip.String(), i.App.Project, i.App.Version, i.App.IDF
		s.Built, s.ELF = i.App.Date+" "+i.App.Time, hex.EncodeToString(i.App.ELF[:])
	}
	if i.Length > 0 {
		s.SHA256 = hex.EncodeToString(i.SHA256[:])
	}
	return s
}
