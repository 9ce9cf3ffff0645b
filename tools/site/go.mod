module github.com/seed-6f6f2c11/duly/tools/site

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	github.com/yuin/goldmark v1.8.7
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
