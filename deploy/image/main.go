// Command image writes an image of duly for several processors, without Docker, as a tarball of an OCI layout:
//
//	go run ./image -zones zoneinfo.zip -version v1.2.3 -to duly.tar linux/amd64=bin/duly-amd64 linux/arm64=bin/duly-arm64
//
// `make image` builds the programs and calls it. The same programs give the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	o := options{}
	flag.StringVar(&o.zones, "zones", "", "zoneinfo.zip of the Go that built the programs")
	flag.StringVar(&o.version, "version", "devel", "version of duly")
	flag.StringVar(&o.to, "to", "", "the tarball to write")
	flag.Parse()
	for _, arg := range flag.Args() {
		platform, file, found := strings.Cut(arg, "=")
		if !found {
			fmt.Fprintf(os.Stderr, "image: %q must be such as linux/amd64=PROGRAM\n", arg)
			os.Exit(2)
		}
		o.programs = append(o.programs, program{platform, file})
	}
	if err := o.write(); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// options are what the image is made of.
type options struct {
	zones, version, to string
	programs           []program
}

// program is the program for one platform.
type program struct{ platform, file string }

// check refuses what is missing before anything is written.
func (o *options) check() error {
	switch {
	case o.zones == "" || o.to == "":
		return errors.New("-zones and -to are required")
	case len(o.programs) == 0:
		return errors.New("name a program: linux/amd64=PROGRAM")
	}
	return nil
}
