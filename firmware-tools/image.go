package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"perch/ota/espimage"
)

// imageFlags are the options of perch-tools image.
type imageFlags struct {
	file string
	json bool
	chip string
	slot int64
}

// image says what a firmware image is, and fails where a robot would not run
// it.
func image(_ context.Context, args []string, stdout, _ io.Writer) error {
	f, err := parseImage(args, stdout)
	if err != nil {
		return err
	}
	target, err := f.target()
	if err != nil {
		return err
	}
	i, err := readImage(f.file)
	var refusal *espimage.Refusal
	if err != nil && !errors.As(err, &refusal) {
		return err
	}
	if err == nil {
		err = i.Fits(target)
	}
	if f.json {
		return errors.Join(showImageJSON(stdout, i, err), err)
	}
	showImage(stdout, i)
	return err
}

func parseImage(args []string, stdout io.Writer) (*imageFlags, error) {
	f := &imageFlags{}
	s := flag.NewFlagSet("perch-tools image", flag.ContinueOnError)
	s.SetOutput(io.Discard)
	s.BoolVar(&f.json, "json", false, "tell it as JSON")
	s.StringVar(&f.chip, "chip", "", "`CHIP` that it must be built for, such as esp32s3")
	s.Int64Var(&f.slot, "slot", 0, "`BYTES` of the partition that it must fit into")
	files, err := parseAround(s, args)
	if errors.Is(err, flag.ErrHelp) {
		return nil, helped(s, stdout, "FILE.bin")
	}
	if err == nil && len(files) != 1 {
		err = fmt.Errorf("it takes one file, not %d", len(files))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	f.file = files[0]
	return f, nil
}

// parseAround takes flags from before and behind the other arguments, which it
// returns.
func parseAround(s *flag.FlagSet, args []string) (others []string, err error) {
	err = s.Parse(args)
	for err == nil && s.NArg() > 0 {
		others = append(others, s.Arg(0))
		err = s.Parse(s.Args()[1:])
	}
	return others, err
}

func (f *imageFlags) target() (espimage.Target, error) {
	t := espimage.Target{Chip: espimage.NoChip, Revision: -1, Slot: f.slot}
	if f.chip == "" {
		return t, nil
	}
	chip, known := espimage.ParseChip(f.chip)
	if !known {
		return t, fmt.Errorf("%w: there is no chip %q; they are spelled as in esp32s3", errUsage, f.chip)
	}
	t.Chip = chip
	return t, nil
}

// readImage returns what could be read where the error is a refusal, too.
func readImage(name string) (espimage.Image, error) {
	file, err := os.Open(name)
	if err != nil {
		return espimage.Image{}, fmt.Errorf("open the image: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return espimage.Image{}, fmt.Errorf("open the image: %w", err)
	}
	if !info.Mode().IsRegular() {
		return espimage.Image{}, fmt.Errorf("%s is no file", name)
	}
	return espimage.Read(file, info.Size())
}

// showImage tells what was read of it, before the error tells what is wrong.
func showImage(w io.Writer, i espimage.Image) {
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
		return // it could not be read that far
	}
	fmt.Fprintf(w, "sha256    %x\n", i.SHA256)
	switch {
	case i.Signed:
		fmt.Fprintln(w, "signature a block of secure boot, which is not checked here")
	case i.Trailing > 0:
		fmt.Fprintf(w, "behind it %d bytes that belong to nothing\n", i.Trailing)
	}
	if !i.Hashed {
		fmt.Fprintln(w, "no SHA-256 ends it: but for one byte of checksum, damage would not be noticed")
	}
}

// shownImage is an image in JSON.
type shownImage struct {
	Kind    espimage.Kind `json:"kind"`
	Valid   bool          `json:"valid"`
	Code    string        `json:"code,omitempty"` // why it is not
	Why     string        `json:"why,omitempty"`
	Size    int64         `json:"size"`
	Length  int64         `json:"length,omitempty"` // of what a boot loader reads
	SHA256  string        `json:"sha256,omitempty"`
	Chip    string        `json:"chip,omitempty"`
	Project string        `json:"project,omitempty"`
	Version string        `json:"version,omitempty"`
	Built   string        `json:"built,omitempty"`
	IDF     string        `json:"idf,omitempty"`
	ELF     string        `json:"elf_sha256,omitempty"`
	Signed  bool          `json:"signed"`
	Hashed  bool          `json:"hashed"`
	Parts   []shownPart   `json:"segments,omitempty"`
}

type shownPart struct {
	Address uint32 `json:"address"`
	Length  uint32 `json:"length"`
	Offset  int64  `json:"offset"`
}

func showImageJSON(w io.Writer, i espimage.Image, err error) error {
	s := shownImage{Kind: i.Kind, Valid: err == nil, Size: i.Size, Length: i.Length, Signed: i.Signed, Hashed: i.Hashed}
	var refusal *espimage.Refusal
	if errors.As(err, &refusal) {
		s.Code, s.Why = refusal.Word, refusal.Sentence
	}
	if i.Kind == espimage.Application {
		s.Chip, s.Project, s.Version, s.IDF = i.Chip.String(), i.App.Project, i.App.Version, i.App.IDF
		s.Built, s.ELF = i.App.Date+" "+i.App.Time, hex.EncodeToString(i.App.ELF[:])
		for _, p := range i.Segments {
			s.Parts = append(s.Parts, shownPart(p))
		}
	}
	if i.Length > 0 {
		s.SHA256 = hex.EncodeToString(i.SHA256[:])
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(s)
}
