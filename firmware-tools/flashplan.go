package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"perch/ota/espimage"
)

// flashed is the state of a robot before it is written to.
type flashed struct {
	chip       espimage.Chip
	revision   int   // of the chip: major * 100 + minor
	bootLoader int64 // address of the boot loader in the flash
	size       int64 // of the flash, in bytes
	table      espimage.Table
	noTable    error              // why the table is missing
	starts     espimage.Partition // started next; its size is 0 if unknown
	app        espimage.App       // in starts
}

// romReach is how much of a flash the loader in a chip's ROM can address, in bytes:
// its addresses have three bytes and wrap around.
const romReach = 16 << 20

// flashFile is a file to be written.
type flashFile struct {
	name  string
	data  []byte
	image espimage.Image
}

type write struct {
	where string // for people: "ota_0", "otadata"
	at    int64
	data  []byte
}

// flashPlan lists what is written, in this order, with notes for the user.
type flashPlan struct {
	what   string
	writes []write
	notes  []string
}

// place is a destination in flash: a partition, or an area before them.
type place struct {
	name      string
	at, limit int64 // limit bytes may be written from there
	partition espimage.Partition
	system    bool // the boot loader, the partition table, settings, or the whole flash
}

// plan decides where a file is written. It returns an error if that would break the robot.
func (f *flashFlags) plan(r flashed, file flashFile) (flashPlan, error) {
	where, err := f.place(r, file)
	if err != nil {
		return flashPlan{}, err
	}
	if where.system && !f.all {
		return flashPlan{}, fmt.Errorf("%s (%s) would be written to %s, on which the robot depends; if that is meant, --all allows it", file.name,
			file.image.Kind, where.name)
	}
	if int64(len(file.data)) > where.limit {
		return flashPlan{}, fmt.Errorf("%s has %d bytes, and %s takes %d: nothing is written past its end", file.name, len(file.data), where.name,
			where.limit)
	}
	if where.at+int64(len(file.data)) > romReach {
		return flashPlan{}, fmt.Errorf("%s would end beyond the first 16 MB of flash, which is as far as the loader in the robot's chip reaches; "+
			"Espressif's own build of esptool writes there, by its stub", file.name)
	}
	kind, app := file.image.Kind, file.image.App
	p := flashPlan{what: fmt.Sprintf("%s, %d bytes", kind, len(file.data)), writes: []write{{where.name, where.at, file.data}}}
	switch kind {
	case espimage.Application:
		p.what = fmt.Sprintf("%s %s for %v, %d bytes", app.Project, app.Version, file.image.Chip, len(file.data))
		err = f.planApp(&p, r, file, where)
	case espimage.AssetFile:
		_, err = espimage.ReadAssets(bytes.NewReader(file.data), int64(len(file.data)))
		if where.partition.Name != "assets" {
			err = fmt.Errorf("the firmware looks for assets in the partition of that name, not in %s", where.name)
		}
	case espimage.Merged:
		err = planWhole(&p, r, file, where)
	case espimage.Settings:
		if !where.partition.IsSettings() || int64(len(file.data)) != where.partition.Size {
			err = fmt.Errorf("settings replace a whole partition of settings, and %s is not one of %d bytes", where.name, len(file.data))
		}
	case espimage.BootLoader:
		err = espimage.CheckBootLoader(file.data, r.target())
		if err == nil && where.at != r.bootLoader {
			err = fmt.Errorf("a boot loader belongs to %#x of an %v", r.bootLoader, r.chip)
		}
	case espimage.PartitionTable:
		_, err = espimage.ParseTable(file.data)
		if err == nil && where.at != espimage.TableOffset {
			err = fmt.Errorf("a partition table belongs to %#x", int64(espimage.TableOffset))
		}
	}
	return p, err
}

func (r flashed) target() espimage.Target {
	return espimage.Target{Chip: r.chip, Revision: r.revision}
}

// place returns the destination of a file: by --at, or the usual one of its kind.
func (f *flashFlags) place(r flashed, file flashFile) (place, error) {
	address, err := strconv.ParseInt(f.at, 0, 64)
	// goes reports whether the file belongs to an area by --at or by its kind.
	goes := func(at int64, kind espimage.Kind) bool {
		return err == nil && address == at || f.at == "" && file.image.Kind == kind
	}
	switch kind := file.image.Kind; {
	case kind == espimage.Merged && goes(0, kind):
		return place{name: "the whole flash", limit: r.size, system: true}, nil
	case goes(r.bootLoader, espimage.BootLoader):
		return place{name: "the boot loader", at: r.bootLoader, limit: espimage.TableOffset - r.bootLoader, system: true}, nil
	case goes(espimage.TableOffset, espimage.PartitionTable):
		return place{name: "the partition table", at: espimage.TableOffset, limit: espimage.TableSize, system: true}, nil
	case r.noTable != nil:
		return place{}, r.noTable
	case err == nil:
		return r.placeAt(address)
	case f.at != "":
		return r.placeNamed(f.at)
	case kind == espimage.AssetFile:
		return r.placeNamed("assets")
	case kind == espimage.Settings:
		return r.placeNamed("nvs")
	case r.starts.Size == 0:
		return place{}, errors.New("the robot has no partition for an application: write a merged image of its board, with --all")
	}
	return placeIn(r.starts), nil
}

func placeIn(p espimage.Partition) place {
	system := p.IsSettings() || p.Type > espimage.DataPartition
	return place{name: p.Name, at: p.Offset, limit: p.Size, partition: p, system: system}
}

func (r flashed) placeNamed(name string) (place, error) {
	p, is := r.table.Named(name)
	if is {
		return placeIn(p), nil
	}
	var names []string
	for _, each := range r.table {
		names = append(names, each.Name)
	}
	return place{}, fmt.Errorf("the robot has no partition %s, but: %s", name, strings.Join(names, ", "))
}

func (r flashed) placeAt(address int64) (place, error) {
	p, is := r.table.At(address)
	switch {
	case !is:
		return place{}, fmt.Errorf("there is no partition at %#x: give the name of one to --at, or its address", address)
	case p.Offset != address:
		return place{}, fmt.Errorf("%#x is in the middle of %s, which begins at %#x", address, p.Name, p.Offset)
	}
	return placeIn(p), nil
}

// planApp checks an application, and makes the robot start it if --boot is given.
func (f *flashFlags) planApp(p *flashPlan, r flashed, file flashFile, where place) error {
	t := r.target()
	t.Slot = where.limit
	switch {
	case where.partition.Size == 0 || !where.partition.IsApp(): // an area without a partition has no type
		return fmt.Errorf("an application belongs to a partition for applications, and %s is not one", where.name)
	case file.image.Fits(t) != nil:
		return fmt.Errorf("%s would not start: %w", file.name, file.image.Fits(t))
	case r.app.Project != "" && r.app.Project != file.image.App.Project && f.board == "":
		return fmt.Errorf(
			"the robot has firmware of the project %s, and %s is of %s: an image does not name its board, and an image of another board "+
				"does not work. If it was built for this robot, confirm it with --board BOARD",
			r.app.Project, file.name, file.image.App.Project)
	}
	choice, has := r.table.Choice()
	if f.boot && !has && where.partition != r.starts {
		return fmt.Errorf("the robot has no otadata to choose %s by; it starts %s", where.name, r.starts.Name)
	}
	if f.boot && has {
		b, err := r.table.Choose(where.partition)
		if err != nil {
			return err
		}
		p.writes = append(p.writes, write{choice.Name, choice.Offset, b})
		p.notes = append(p.notes, fmt.Sprintf("the robot then starts %s", where.name))
	} else if where.partition != r.starts {
		p.notes = append(p.notes, fmt.Sprintf("the robot goes on to start %s, as its otadata says; with --boot it starts %s", r.starts.Name,
			where.name))
	}
	return nil
}

func planWhole(p *flashPlan, r flashed, file flashFile, where place) error {
	if where.at != 0 {
		return errors.New("a merged image belongs to 0")
	}
	table, err := espimage.CheckWhole(file.data, espimage.WholeTarget{Target: r.target(), BootLoader: r.bootLoader, Flash: r.size})
	if err != nil {
		return fmt.Errorf("%s would not start: %w", file.name, err)
	}
	for _, part := range table {
		if part.IsSettings() && part.Offset < int64(len(file.data)) {
			p.notes = append(p.notes,
				fmt.Sprintf("%s goes with it: the robot forgets its Wi-Fi, its appliance and who it is (`perch-tools robot flash --save "+
					"--at %s FILE` keeps a copy)", part.Name, part.Name))
		}
	}
	return nil
}

// locked returns an error for security settings that would reject what is written.
func locked(secureDownload, encrypted, secureBoot bool) error {
	switch {
	case secureDownload:
		return errors.New(
			"the robot is in secure download mode: its loader does not read its flash, so that nothing could be verified, and nothing is " +
				"written; the maker's tools may work")
	case encrypted:
		return errors.New("the robot's flash is encrypted, with a key that only its chip has: it could not read what is written here. It takes " +
			"upgrades over the network: perch-tools firmware publish")
	case secureBoot:
		return errors.New(
			"the robot starts only firmware that its maker has signed (secure boot), and a write over USB could leave it without any. It " +
				"takes upgrades over the network: perch-tools firmware publish")
	}
	return nil
}
