import { writeFile } from 'node:fs/promises';
import { init } from 'echarts';

const WIDTH = 760;
/** Height of title, legend and axis. */
const MARGINS = 110;
const BAR = 18;
const COLOURS = ['#00688b', '#e08a1e', '#8a9a5b'];

export interface BarChart {
  /** Includes the unit of the values. */
  title: string;
  /** From top to bottom. */
  categories: string[];
  /** A bar for each category. */
  series: Record<string, number[]>;
}

/** Draws horizontal bars with their values, from zero, and writes them as SVG. */
export async function barChart(path: string, { title, categories, series }: BarChart): Promise<void> {
  const names = Object.keys(series);
  const height = MARGINS + categories.length * (names.length * BAR + BAR);
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height });
  chart.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    color: COLOURS,
    title: { text: title, left: 'center' },
    legend: { data: names, bottom: 0 },
    grid: { top: 40, bottom: 60, left: 12, right: 60, containLabel: true },
    xAxis: { type: 'value', min: 0 },
    yAxis: { type: 'category', data: categories, inverse: true, axisTick: { show: false } },
    series: names.map((name) => ({
      type: 'bar',
      silent: true,
      name,
      barWidth: BAR,
      data: series[name],
      label: { show: true, position: 'right' },
    })),
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  await writeFile(path, `${svg}\n`);
}
