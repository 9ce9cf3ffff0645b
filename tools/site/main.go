// Command site writes the documents of duly as a website: pages of HTML with a navigation, one stylesheet and no JavaScript.
//
//	go run . -from ../.. -to ../../site
//
// It is a module of its own, so that who builds duly does not get a reader of Markdown. It refuses a link that leads nowhere.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	from := flag.String("from", "../..", "the repository")
	to := flag.String("to", "../../site", "the folder to write, which is replaced")
	flag.Parse()
	n, err := build(*from, *to)
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages in %s: open %s/index.html\n", n, *to, *to)
}
