# SPDX-License-Identifier: Apache-2.0
# Draws what bench_growth or instructions.sh prints: time or instructions against size, both axes
# logarithmic. Along the gray lines they double with the size.
# usage: bench_growth --benchmark_filter=-large >growth.txt
#        gnuplot -c growth.gp growth.txt "processor time, ms" >growth.svg
set terminal svg size 900,640 font "sans-serif,14" background "white"
set logscale xy
set xlabel "samples, groups or layers"
set ylabel ARG2
set format xy "10^{%L}"
set xrange [400:2e7]
set yrange [1e-3:5e4]
set samples 2
set key outside bottom center horizontal maxrows 3 noenhanced
names = "pack_tokens pack_images_and_tokens improve_pass lpt schedule_steps partition_minimax partition_layers"
labels = "'best fit, tokens' 'best packing, images and tokens' 'a pass of improve_packing' 'lpt, 512 parts' \
  'schedule_steps, 64 ranks' 'partition_minimax, 1024 stages' 'partition_layers, 16 stages'"
points_of(name) = sprintf("< sed -n 's|^%s/n:\\([0-9]*\\)/.*_per_item=\\(.*\\)|\\1 \\2|p' '%s'", name, ARG1)
# Thousands are printed with a k.
number(text) = strstrt(text, "k") == 0 ? real(text) : 1000 * real(text[1:strlen(text) - 1])
plot for [power = -8:0] 10.0**power * x title "" with lines linecolor "#cccccc" linewidth 1, \
  for [i = 1:words(names)] points_of(word(names, i)) \
    using 1:(number(strcol(2)) * $1 * 1e-6) \
    with linespoints linetype i pointtype 7 pointsize 0.5 linewidth 2 title word(labels, i)
